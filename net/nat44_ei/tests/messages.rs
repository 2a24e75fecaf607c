//! What messages say: workers, interfaces with an output feature, limits.

use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_nat44_ei::Enable;
use shoal_nat44_ei::api::Nat44EiConfigFlags;
use shoal_nat44_ei::api::interface::{
    Nat44EiAddDelOutputInterface, Nat44EiInterfaceAddDelFeature, Nat44EiInterfaceAddDelOutputFeature,
    Nat44EiInterfaceDump, Nat44EiInterfaceOutputFeatureDump,
};
use shoal_nat44_ei::api::own::{ShoalNat44EiUserLimitGet, ShoalNat44EiUserLimitSet};
use shoal_nat44_ei::api::settings::{Nat44EiSetWorkers, Nat44EiWorkerDump};

use crate::common::{Bed, bed, plain};

const INSIDE: u8 = 16;
const OUTSIDE: u8 = 32;

#[test]
fn two_workers_are_listed_and_may_be_named_together() {
    let bed = bed();
    let set = |bed: &Bed, worker_mask: u64| {
        Nat44EiSetWorkers { worker_mask }.handle(&Call::local(bed.router.control()))
    };
    let listed = |bed: &Bed| -> Vec<(u32, String)> {
        let all = Nat44EiWorkerDump {}.dump(&Call::local(bed.router.control()));
        all.map(|details| (details.worker_index, details.name.as_str().to_owned())).collect()
    };
    // One worker shares nothing out.
    for _ in 0..2 {
        assert_eq!(listed(&bed), []);
        assert_eq!(set(&bed, 1), Err(Retval::FEATURE_DISABLED));
        if bed.router.graph().threads().len() == 1 {
            bed.router.graph().add_worker(None).unwrap();
        }
    }
    bed.router.graph().add_worker(None).unwrap();
    assert_eq!(listed(&bed), [(0, "vpp_wk_0".to_owned()), (1, "vpp_wk_1".to_owned())]);
    let of = [0, 1, 2, 3, 4, u64::MAX].map(|mask| set(&bed, mask));
    let (none, part) = (Err(Retval::INVALID_WORKER), Err(Retval::UNSUPPORTED));
    assert_eq!(of, [none, part, part, Ok(()), none, none]);
}

/// The flags of each interface of both lists, without the newer one.
fn listed(bed: &Bed) -> [Vec<(u32, u8)>; 2] {
    let call = Call::local(bed.router.control());
    let sides = Nat44EiInterfaceDump {}.dump(&call).map(|d| (d.sw_if_index.0, d.flags.0)).collect();
    let output =
        Nat44EiInterfaceOutputFeatureDump {}.dump(&call).map(|d| (d.sw_if_index.0, d.flags.0)).collect();
    [sides, output]
}

#[test]
fn lists_say_which_side_and_which_kind_an_interface_has() {
    let bed = plain();
    bed.nat().enable(Enable::default()).unwrap();
    let call = Call::local(bed.router.control());
    let [inside, outside] = [bed.inside.index().0, bed.outside.index().0];
    let side = |is_add, flags, interface| {
        let (flags, sw_if_index) = (Nat44EiConfigFlags(flags), InterfaceIndex(interface));
        Nat44EiInterfaceAddDelFeature { is_add, flags, sw_if_index }.handle(&call)
    };
    let output = |is_add, flags, interface| {
        let (flags, sw_if_index) = (Nat44EiConfigFlags(flags), InterfaceIndex(interface));
        Nat44EiInterfaceAddDelOutputFeature { is_add, flags, sw_if_index }.handle(&call)
    };
    side(true, INSIDE, inside).unwrap();
    side(true, OUTSIDE, inside).unwrap();
    assert_eq!(listed(&bed), [vec![(inside, INSIDE | OUTSIDE)], vec![]]);
    assert!(output(true, OUTSIDE, inside).is_err(), "one kind of NAT for an interface");
    for flags in [INSIDE, OUTSIDE] {
        side(false, flags, inside).unwrap();
    }
    // As VPP has it, the list says of an output feature only that it is on the inside.
    output(true, INSIDE, inside).unwrap();
    output(true, OUTSIDE, outside).unwrap();
    assert_eq!(listed(&bed), [vec![], vec![(inside, INSIDE), (outside, 0)]]);
    assert!(side(true, OUTSIDE, outside).is_err());
    output(false, INSIDE, inside).unwrap();
    output(false, OUTSIDE, outside).unwrap();
    assert!(output(false, OUTSIDE, outside).is_err(), "it has none");
    assert_eq!(listed(&bed), [vec![], vec![]]);
    // What the newer message adds is in the newer list.
    let newer = Nat44EiAddDelOutputInterface { is_add: true, sw_if_index: InterfaceIndex(outside) };
    newer.handle(&call).unwrap();
    assert_eq!(listed(&bed), [vec![], vec![]]);
    assert_eq!(bed.nat().outputs().len(), 1);
}

#[test]
fn what_becomes_of_hosts_at_their_limit_is_set_and_asked_for() {
    let bed = bed();
    let call = Call::local(bed.router.control());
    let drops = || ShoalNat44EiUserLimitGet {}.handle(&call).unwrap().drop;
    assert!(!drops());
    ShoalNat44EiUserLimitSet { drop: true }.handle(&call).unwrap();
    assert!(drops());
    ShoalNat44EiUserLimitSet { drop: false }.handle(&call).unwrap();
    assert!(!drops());
}
