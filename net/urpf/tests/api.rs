//! `urpf.api`: checks of sources through the binary API, for both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use shoal_fib::{Family, Fib};
use shoal_message::{AddressFamily, InterfaceIndex, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{Port, Router, STACK, api};
use shoal_urpf::api::*;
use shoal_urpf::{Mode, Urpf};

const OWN: u32 = u32::MAX;

fn router() -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_urpf::MODULE);
    let mut router = Router::new(&modules);
    let ports = (0..2).map(|n| router.pg(n)).collect();
    (router, ports)
}

fn set(call: &Call, is_input: bool, mode: UrpfMode, af: AddressFamily, interface: u32) -> Result<(), Retval> {
    let sw_if_index = InterfaceIndex(interface);
    UrpfUpdateV2 { is_input, mode, af, sw_if_index, table_id: OWN }.handle(call)
}

fn dump(call: &Call, sw_if_index: InterfaceIndex) -> Vec<(u32, bool, UrpfMode, AddressFamily, u32)> {
    let all = UrpfInterfaceDump { sw_if_index }.dump(call);
    all.map(|d| (d.sw_if_index.0, d.is_input, d.mode, d.af, d.table_id)).collect()
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, _) = router();
    api::random_bytes_do_no_harm(&mut router, &[&API], 200);
}

#[test]
fn checks_are_set_dumped_and_taken_away() {
    use AddressFamily::{Ip4, Ip6};
    let (router, ports) = router();
    let call = Call::local(router.control());
    router.get::<Fib>().add_table(Family::Ip6, 7, None).unwrap();
    let (a, b) = (ports[0].index().0, ports[1].index().0);
    let sw_if_index = InterfaceIndex(a);
    UrpfUpdate { is_input: true, mode: UrpfMode::Strict, af: Ip4, sw_if_index }.handle(&call).unwrap();
    UrpfUpdateV2 { is_input: false, mode: UrpfMode::Loose, af: Ip6, sw_if_index, table_id: 7 }
        .handle(&call)
        .unwrap();
    set(&call, true, UrpfMode::Loose, Ip6, b).unwrap();
    let of_a = [(a, true, UrpfMode::Strict, Ip4, 0), (a, false, UrpfMode::Loose, Ip6, 7)];
    let of_b = [(b, true, UrpfMode::Loose, Ip6, 0)];
    assert_eq!(dump(&call, sw_if_index), of_a);
    assert_eq!(dump(&call, InterfaceIndex::NONE), [&of_a[..], &of_b].concat());
    assert_eq!(dump(&call, InterfaceIndex(77)), []);
    assert_eq!(router.get::<Urpf>().settings()[0].mode, Mode::Strict);
    set(&call, true, UrpfMode::Off, Ip4, a).unwrap();
    set(&call, true, UrpfMode::Off, Ip4, a).unwrap();
    assert_eq!(dump(&call, sw_if_index), of_a[1..]);
}

#[test]
fn mistakes_have_vpps_numbers() {
    let (router, ports) = router();
    let call = Call::local(router.control());
    let off = set(&call, true, UrpfMode::Loose, AddressFamily::Ip4, 77);
    assert_eq!(off, Err(Retval::INVALID_SW_IF_INDEX));
    let sw_if_index = InterfaceIndex(ports[0].index().0);
    let (mode, af) = (UrpfMode::Loose, AddressFamily::Ip6);
    let nowhere = UrpfUpdateV2 { is_input: true, mode, af, sw_if_index, table_id: 77 };
    assert_eq!(nowhere.handle(&call), Err(Retval::NO_SUCH_FIB));
    assert!(dump(&call, InterfaceIndex::NONE).is_empty());
}
