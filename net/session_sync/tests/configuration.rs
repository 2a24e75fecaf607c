//! Messages, the running configuration, and what makes no sense.

use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_nat::tuple::UDP;
use shoal_session_sync::api::*;
use shoal_session_sync::{Key, Peer, RoleSource, SyncError, Timers};

use crate::common::{KEY, Side, link, peer, tuple};

fn lines(side: &Side) -> String {
    let mut running = Running::default();
    (shoal_session_sync::MODULE.running)(side.router.control(), &mut running);
    running.pieces().collect()
}

#[test]
fn what_is_configured_is_written_as_the_commands_that_rebuild_it() {
    let side = Side::plain(1);
    let sync = side.sync();
    assert_eq!(lines(&side), "");
    sync.set_timers(Timers { hello: 50, dead: 150, refresh: 20 }).unwrap();
    sync.set_role(RoleSource::Standby).unwrap();
    sync.set_peer(Some(peer(true, 1, 2))).unwrap();
    let all = lines(&side);
    for line in [
        "session-sync timers hello 50 dead 150 refresh 20\n".to_owned(),
        "session-sync role standby\n".to_owned(),
        format!("session-sync peer 2001:db8:5::2 local 2001:db8:5::1 key {KEY}\n"),
    ] {
        assert!(all.contains(&line), "{all}");
    }
    sync.set_role(RoleSource::Interface(side.inside.index())).unwrap();
    assert!(lines(&side).contains("session-sync role interface pg0\n"));
    sync.set_peer(Some(Peer { key: None, port: 99, ..peer(false, 1, 2) })).unwrap();
    assert!(
        lines(&side).contains("session-sync peer 172.16.0.2 local 172.16.0.1 port 99 no-authentication\n")
    );
    sync.set_peer(None).unwrap();
    sync.set_role(RoleSource::Active).unwrap();
    sync.set_timers(Timers::default()).unwrap();
    assert_eq!(lines(&side), "");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let side = Side::plain(1);
    let sync = side.sync();
    let good = peer(false, 1, 2);
    let of = |address: &str, local: &str| Peer {
        address: address.parse().unwrap(),
        local: local.parse().unwrap(),
        ..good.clone()
    };
    for (wrong, why) in [
        (of("172.16.0.2", "2001:db8::1"), "not of one family"),
        (of("0.0.0.0", "172.16.0.1"), "no address of a router"),
        (of("172.16.0.2", "224.0.0.1"), "no address of a router"),
        (of("ff02::1", "2001:db8::1"), "no address of a router"),
        (of("172.16.0.1", "172.16.0.1"), "own address and the other's"),
        (Peer { port: 0, ..good.clone() }, "no port 0"),
        (Peer { port: 3784, ..good.clone() }, "another part of the router"),
    ] {
        let error = sync.set_peer(Some(wrong)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(sync.peer(), None);
    }
    for timers in [
        Timers { hello: 9, ..Timers::default() },
        Timers { dead: 60_001, ..Timers::default() },
        Timers { refresh: 0, ..Timers::default() },
        Timers { hello: 100, dead: 299, ..Timers::default() },
    ] {
        assert!(sync.set_timers(timers).is_err(), "{timers:?}");
        assert_eq!(sync.timers(), Timers::default());
    }
    assert_eq!(sync.resync(), Err(SyncError::NoPeer));
    assert!(sync.set_role(RoleSource::Interface(shoal_interface::SwIfIndex(99))).is_err());
    assert_eq!(sync.role_source(), RoleSource::Active);
    // The second peer's port is taken: the first one stays.
    sync.set_peer(Some(good.clone())).unwrap();
    assert!(sync.set_peer(Some(Peer { port: 3784, ..good.clone() })).is_err());
    assert_eq!(sync.peer(), Some(good));
}

#[test]
fn without_another_router_nothing_is_sent_and_sessions_begin_as_ever() {
    let mut side = Side::new(1);
    side.sync().set_role(RoleSource::Standby).unwrap();
    let flow = tuple(("10.0.0.2", 53), ("198.51.100.7", 53));
    assert!(side.out(flow, UDP, 0).is_some(), "a role without another router says nothing");
    side.sync().set_peer(Some(peer(false, 1, 2))).unwrap();
    assert_eq!(side.out(tuple(("10.0.0.2", 54), ("198.51.100.7", 53)), UDP, 0), None);
    side.sync().set_peer(None).unwrap();
    assert!(side.out(tuple(("10.0.0.2", 54), ("198.51.100.7", 53)), UDP, 0).is_some());
    side.link.received();
    side.router.advance(std::time::Duration::from_secs(5));
    assert!(side.link.received().iter().all(|frame| frame[23] != 17), "no hello");
}

#[test]
fn a_trace_shows_what_the_other_router_says() {
    let mut pair = crate::common::pair(true);
    pair.sides[1].router.trace_add("pg-input", 10);
    pair.sides[0].connect(tuple(("10.0.0.2", 5000), ("198.51.100.7", 80))).unwrap();
    pair.advance(250);
    let trace = pair.sides[1].router.trace();
    for said in ["session-sync: data ", "session-sync: hello "] {
        assert!(trace.contains(said), "{trace}");
    }
    assert!(trace.contains(" from 2001:db8:5::1, "), "{trace}");
}

#[test]
fn messages_do_the_same() {
    let side = Side::plain(1);
    let call = Call::local(side.router.control());
    let set = |key: &str, no_authentication| ShoalSessionSyncPeerSet {
        peer: link(false, 2),
        local: link(false, 1),
        port: 0,
        no_authentication,
        key: key.into(),
    };
    assert_eq!(set("", false).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(set("zz", false).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(set(KEY, true).handle(&call), Err(Retval::INVALID_ARGUMENT));
    set(KEY, false).handle(&call).unwrap();
    assert_eq!(side.sync().peer().unwrap().key, Key::from_hex(KEY));
    let role = |role, interface: u32| ShoalSessionSyncRoleSet {
        role: ShoalSessionSyncRole(role),
        sw_if_index: InterfaceIndex(interface),
        vr_id: 1,
        is_ipv6: false,
        local: link(false, 1),
        peer: link(false, 2),
    };
    assert_eq!(role(5, 0).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(role(3, 99).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(role(2, 1).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    role(1, 0).handle(&call).unwrap();
    let timers = |hello_ms| ShoalSessionSyncTimersSet { hello_ms, dead_ms: 500, refresh_seconds: 10 };
    assert_eq!(timers(400).handle(&call), Err(Retval::INVALID_VALUE));
    timers(100).handle(&call).unwrap();
    ShoalSessionSyncResync {}.handle(&call).unwrap();
    let got = ShoalSessionSyncGet {}.handle(&call).unwrap();
    assert!(got.has_peer && got.is_authenticated && !got.is_up && !got.is_active);
    assert_eq!((got.role.0, got.port, got.hello_ms), (1, Peer::PORT, 100));
    let names: Vec<String> = ShoalSessionSyncFeatureDump {}.dump(&call).map(|it| it.name).collect();
    assert_eq!(names, ["nat44-ed", "nat64"]);
    assert_eq!(ShoalSessionSyncRefusedDump {}.dump(&call).count(), 0);
    ShoalSessionSyncPeerDel {}.handle(&call).unwrap();
    assert_eq!(ShoalSessionSyncResync {}.handle(&call), Err(Retval::NO_SUCH_ENTRY));
}
