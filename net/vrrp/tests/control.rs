//! What is refused, messages, saved configuration.

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_message::{Count, InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{Listener, api};
use shoal_vrrp::api::*;
use shoal_vrrp::{Config, MODULE, Version, VrrpError};

use crate::bed::*;

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let bed = bed();
    let good = bed.config();
    let none: &[IpAddr] = &[];
    let with = |addresses: &[IpAddr]| Config { addresses: addresses.to_vec(), ..good.clone() };
    let mut nowhere = good.clone();
    nowhere.key.interface = shoal_interface::SwIfIndex(99);
    let mut zero = good.clone();
    zero.key.vr_id = 0;
    let bad = [
        (nowhere, Retval::INVALID_SW_IF_INDEX),
        (zero, Retval::INVALID_VALUE),
        (Config { priority: 0, ..good.clone() }, Retval::INVALID_VALUE),
        (Config { interval: 0, ..good.clone() }, Retval::INVALID_VALUE),
        (Config { interval: 4096, ..good.clone() }, Retval::INVALID_VALUE),
        (with(none), Retval::INVALID_SRC_ADDRESS),
        (with(&[ip("fe80::1")]), Retval::INVALID_ARGUMENT),
        (with(&[ip("224.0.0.18")]), Retval::INVALID_ARGUMENT),
        (Config { priority: 255, ..good.clone() }, Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE),
        (Config { version: Version::V2, interval: 50, ..good.clone() }, Retval::INVALID_VALUE),
        (Config { version: Version::V2, ..bed.config6() }, Retval::INVALID_VALUE),
    ];
    for (config, retval) in bad {
        let error = bed.vrrp.add(config.clone()).unwrap_err();
        assert_eq!(Retval::from(error), retval, "{config:?}");
    }
    assert!(bed.vrrp.list().is_empty());
    let index = bed.vrrp.add(good.clone()).unwrap();
    assert_eq!(bed.vrrp.add(good.clone()), Err(VrrpError::Exists));
    let mut second = good.clone();
    second.key.vr_id = 8;
    assert_eq!(bed.vrrp.add(second.clone()), Err(VrrpError::InUse(VIP.into(), 7)));
    assert_eq!(bed.vrrp.update(index, second), Err(VrrpError::OtherVr(index)));
    assert_eq!(bed.vrrp.set_peers(good.key, vec![OTHER.into()]), Err(VrrpError::NotUnicast));
    assert!(bed.vrrp.start(bed.key(Family::Ip6)).is_err());
    bed.vrrp.del(index).unwrap();
    assert_eq!(bed.vrrp.del(index), Err(VrrpError::NoIndex(index)));
}

fn add(bed: &Bed, is_add: u8) -> VrrpVrAddDel {
    VrrpVrAddDel {
        is_add,
        sw_if_index: InterfaceIndex(bed.lan.index().0),
        vr_id: 7,
        priority: 100,
        interval: 100,
        flags: VrrpVrFlags(1 | 2),
        n_addrs: Count::default(),
        addrs: vec![VIP.into()],
    }
}

#[test]
fn messages_configure_list_and_tell() {
    let mut bed = bed();
    let listener = Listener::new(&bed.router, &[&API]);
    let call = listener.call(&bed.router);
    let lan = InterfaceIndex(bed.lan.index().0);
    let all = InterfaceIndex(u32::MAX);
    WantVrrpVrEvents { enable_disable: true, pid: 1 }.handle(&call).unwrap();
    add(&bed, 1).handle(&call).unwrap();
    assert_eq!(add(&bed, 1).handle(&call), Err(Retval::ENTRY_ALREADY_EXISTS));
    let start = |is_start, vr_id| VrrpVrStartStop { sw_if_index: lan, vr_id, is_ipv6: 0, is_start };
    assert_eq!(start(1, 8).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    start(1, 7).handle(&call).unwrap();
    bed.advance(4000);
    let events: Vec<(u32, u32)> =
        listener.events::<VrrpVrEvent>().iter().map(|event| (event.old_state.0, event.new_state.0)).collect();
    assert_eq!(events, [(0, 1), (1, 2)]);
    let dump = |sw_if_index| VrrpVrDump { sw_if_index }.dump(&call).collect::<Vec<_>>();
    let details = dump(all);
    let VrrpVrDetails { config, runtime, addrs, .. } = &details[0];
    assert_eq!((config.flags, config.interval, &addrs[..]), (VrrpVrFlags(3), 100, &[IpAddr::from(VIP)][..]));
    assert_eq!((runtime.state.0, runtime.skew, runtime.master_down_int), (2, 60, 360));
    assert_eq!((runtime.mac.0, runtime.tracking.priority), (MAC.0, 100));
    assert_eq!(dump(InterfaceIndex(0)).len(), 1, "0 is all, too");
    assert_eq!((dump(lan).len(), dump(InterfaceIndex(bed.wan.index().0)).len()), (1, 0));
    // Tracking.
    let track = |is_add, priority| VrrpVrTrackIfAddDel {
        sw_if_index: lan,
        is_ipv6: 0,
        vr_id: 7,
        is_add,
        n_ifs: Count::default(),
        ifs: vec![VrrpVrTrackIf { sw_if_index: InterfaceIndex(bed.wan.index().0), priority }],
    };
    assert_eq!(track(1, 0).handle(&call), Err(Retval::INVALID_VALUE));
    track(1, 20).handle(&call).unwrap();
    let tracked = |dump_all, vr_id| {
        VrrpVrTrackIfDump { sw_if_index: lan, is_ipv6: 0, vr_id, dump_all }.dump(&call).count()
    };
    assert_eq!((tracked(0, 7), tracked(0, 8), tracked(1, 8)), (1, 0, 1));
    track(0, 20).handle(&call).unwrap();
    track(0, 20).handle(&call).expect("what is not tracked need not go");
    assert_eq!((tracked(0, 7), tracked(1, 8)), (1, 0), "one that is asked for, although there is none");
    let own = VrrpVrTrackIf { sw_if_index: lan, priority: 20 };
    assert_eq!(
        VrrpVrTrackIfAddDel { ifs: vec![own], ..track(1, 1) }.handle(&call),
        Err(Retval::INVALID_SW_IF_INDEX_2)
    );
    assert_eq!(VrrpVrTrackIfAddDel { ifs: Vec::new(), ..track(1, 1) }.handle(&call), Ok(()));
    assert_eq!(VrrpVrTrackIfAddDel { vr_id: 9, ..track(1, 20) }.handle(&call), Err(Retval::INVALID_VALUE));
    // Peers.
    let peers = |addrs: Vec<IpAddr>| VrrpVrSetPeers {
        sw_if_index: lan,
        vr_id: 7,
        is_ipv6: 0,
        n_addrs: Count::default(),
        addrs,
    };
    assert_eq!(peers(vec![OTHER.into()]).handle(&call), Err(Retval::INVALID_ARGUMENT));
    let unicast =
        VrrpVrAddDel { vr_id: 11, flags: VrrpVrFlags(1 | 4), addrs: vec![ip("10.0.0.111")], ..add(&bed, 1) };
    unicast.handle(&call).unwrap();
    let peers = |vr_id, addrs| VrrpVrSetPeers { vr_id, ..peers(addrs) }.handle(&call);
    assert_eq!(peers(9, Vec::new()), Err(Retval::NO_SUCH_ENTRY));
    assert_eq!(peers(11, Vec::new()), Err(Retval::INVALID_DST_ADDRESS));
    let listed = |sw_if_index, vr_id| VrrpVrPeerDump { sw_if_index, is_ipv6: 0, vr_id }.dump(&call).count();
    assert_eq!((listed(lan, 11), listed(all, 0)), (1, 0));
    peers(11, vec![OTHER.into()]).unwrap();
    start(1, 11).handle(&call).unwrap();
    assert_eq!(peers(11, vec![OTHER.into()]), Err(Retval::RSRC_IN_USE));
    assert_eq!(listed(InterfaceIndex(0), 0), 1);
    start(0, 11).handle(&call).unwrap();
    VrrpVrDel { vrrp_index: 1 }.handle(&call).unwrap();
    // An update where it stands.
    let update = |vrrp_index, priority, vr_id| {
        VrrpVrUpdate {
            vrrp_index,
            sw_if_index: lan,
            vr_id,
            priority,
            interval: 200,
            flags: VrrpVrFlags(1),
            n_addrs: Count::default(),
            addrs: vec![ip("10.0.0.101")],
        }
        .handle(&call)
    };
    assert_eq!(update(0, 120, 7).unwrap().vrrp_index, 0);
    let now = &dump(all)[0];
    assert_eq!((now.config.priority, now.runtime.state.0, now.addrs[0]), (120, 2, ip("10.0.0.101")));
    assert_eq!(update(9, 120, 7).err(), Some(Retval::NO_SUCH_ENTRY));
    start(0, 7).handle(&call).unwrap();
    VrrpVrDel { vrrp_index: 0 }.handle(&call).unwrap();
    assert_eq!(VrrpVrDel { vrrp_index: 0 }.handle(&call), Err(Retval::NO_SUCH_ENTRY));
    assert_eq!(update(u32::MAX, 120, 9).unwrap().vrrp_index, 0);
    assert_eq!(add(&bed, 0).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    let _ = Call::local(bed.router.control());
}

#[test]
fn messages_are_vpps_and_random_ones_do_no_harm() {
    let mut bed = bed();
    if let Some(compared) = api::same_as_vpp(&[&API]) {
        assert!(compared > 0);
    }
    api::random_bytes_do_no_harm(&mut bed.router, &[&API], 2000);
}

#[test]
fn the_configuration_is_saved() {
    let bed = bed();
    let config = Config {
        priority: 120,
        interval: 300,
        preempt: false,
        accept: true,
        unicast: true,
        version: Version::V2,
        ..bed.config()
    };
    bed.vrrp.add(config.clone()).unwrap();
    bed.vrrp.set_peers(config.key, vec![OTHER.into()]).unwrap();
    bed.vrrp.track_interfaces(config.key, &[(bed.wan.index(), 20)]).unwrap();
    bed.vrrp.track_route(config.key, "0.0.0.0/0".parse().unwrap(), 30).unwrap();
    bed.run(bed.config6());
    let mut running = Running::default();
    (MODULE.running)(bed.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    assert_eq!(
        lines.lines().filter(|line| line.starts_with("vrrp")).collect::<Vec<_>>(),
        [
            "vrrp vr add pg0 vr_id 7 priority 120 interval 300 no_preempt accept_mode unicast version 2 10.0.0.100",
            "vrrp peers pg0 vr_id 7 10.0.0.9",
            "vrrp vr track-if add pg0 vr_id 7 pg1 priority 20",
            "vrrp vr track-route add pg0 vr_id 7 0.0.0.0/0 priority 30",
            "vrrp vr add pg0 vr_id 7 ipv6 fe80::7 2001:db8::100",
            "vrrp proto start pg0 vr_id 7 ipv6",
        ]
    );
}
