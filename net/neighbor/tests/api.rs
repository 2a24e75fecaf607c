//! `ip_neighbor.api`: neighbours through the binary API, for both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::IpAddr;
use std::time::Duration;

use shoal_message::{AddressFamily, InterfaceIndex, MacAddress, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_neighbor::Families;
use shoal_neighbor::api::*;
use shoal_testkit::{Listener, PEER_MAC, PacketBuilder, Port, Router, STACK, US, api};

const ALL: InterfaceIndex = InterfaceIndex::NONE;
const STATIC: u8 = IpNeighborFlags::STATIC;
const MAC: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 9]);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_neighbor::MODULE, &shoal_ip6_nd::MODULE]);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.run();
    (router, port)
}

fn neighbor(port: &Port, address: &str, flags: u8) -> IpNeighbor {
    IpNeighbor {
        sw_if_index: InterfaceIndex(port.index().0),
        flags: IpNeighborFlags(flags),
        mac_address: MAC,
        ip_address: ip(address),
    }
}

fn set(call: &Call, is_add: bool, neighbor: IpNeighbor) -> Result<u32, Retval> {
    IpNeighborAddDel { is_add, neighbor }.handle(call).map(|reply| reply.stats_index)
}

fn dump(call: &Call, af: AddressFamily, sw_if_index: InterfaceIndex) -> Vec<IpNeighbor> {
    IpNeighborDump { sw_if_index, af }.dump(call).map(|details| details.neighbor).collect()
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
fn neighbours_of_both_families_are_entered_dumped_and_forgotten() {
    let (mut router, port) = router();
    let call = Call::local(router.control());
    for (address, af) in [("10.0.0.9", AddressFamily::Ip4), ("2001:db8::9", AddressFamily::Ip6)] {
        let new = neighbor(&port, address, STATIC | IpNeighborFlags::NO_FIB_ENTRY);
        assert_ne!(set(&call, true, new).unwrap(), u32::MAX);
        assert_eq!(dump(&call, af, ALL), [new]);
        assert_eq!(dump(&call, af, new.sw_if_index), [new]);
        assert_eq!(dump(&call, af, InterfaceIndex(77)), []);
        let other = IpNeighbor { flags: IpNeighborFlags(0), ..new };
        assert_eq!(set(&call, true, other), Err(Retval::ENTRY_ALREADY_EXISTS), "what is static stays");
        assert_eq!(set(&call, false, other), Ok(u32::MAX));
        assert_eq!(set(&call, false, other), Err(Retval::NO_SUCH_ENTRY));
        assert_eq!(dump(&call, af, ALL), []);
    }
    // Packets go where the API set them.
    set(&call, true, neighbor(&port, "10.0.0.9", STATIC)).unwrap();
    let IpAddr::V4(nine) = ip("10.0.0.9") else { return };
    port.received();
    let ping = PacketBuilder::ethernet(PEER_MAC, port.mac()).ip4(US, nine).udp(1, 2).build();
    router.send(&port, ping);
    assert_eq!(port.received_one()[..6], MAC.0);
}

#[test]
fn mistakes_have_vpps_numbers() {
    let (router, port) = router();
    let call = Call::local(router.control());
    let good = neighbor(&port, "10.0.0.9", 0);
    let with = |change: fn(&mut IpNeighbor)| {
        let mut bad = good;
        change(&mut bad);
        bad
    };
    assert_eq!(
        set(&call, true, with(|n| n.sw_if_index = InterfaceIndex(77))),
        Err(Retval::INVALID_SW_IF_INDEX)
    );
    assert_eq!(set(&call, false, with(|n| n.sw_if_index = ALL)), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(set(&call, true, with(|n| n.mac_address = MacAddress([0xff; 6]))), Err(Retval::INVALID_VALUE));
    assert_eq!(set(&call, true, with(|n| n.ip_address = ip("ff02::1"))), Err(Retval::INVALID_VALUE));
    let flush = IpNeighborFlush { af: AddressFamily::Ip6, sw_if_index: InterfaceIndex(77) };
    assert_eq!(flush.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    let config =
        |max_number, recycle| IpNeighborConfig { af: AddressFamily::Ip4, max_number, max_age: 300, recycle };
    config(1, false).handle(&call).unwrap();
    set(&call, true, good).unwrap();
    assert_eq!(set(&call, true, neighbor(&port, "10.0.0.10", 0)), Err(Retval::LIMIT_EXCEEDED));
    let now = IpNeighborConfigGet { af: AddressFamily::Ip4 }.handle(&call).unwrap();
    assert_eq!((now.max_number, now.max_age, now.recycle), (1, 300, false));
    let other = IpNeighborConfigGet { af: AddressFamily::Ip6 }.handle(&call).unwrap();
    assert_eq!((other.max_number, other.max_age, other.recycle), (50_000, 0, false));
}

#[test]
fn a_large_table_is_dumped_piece_by_piece_while_it_changes() {
    let (router, port) = router();
    let call = Call::local(router.control());
    for n in 0..200u16 {
        set(&call, true, neighbor(&port, &format!("2001:db8::{:x}", n + 2), 0)).unwrap();
    }
    let mut rows = IpNeighborDump { sw_if_index: ALL, af: AddressFamily::Ip6 }.dump(&call);
    let first: Vec<_> = rows.by_ref().take(10).collect();
    assert_eq!(first.len(), 10);
    IpNeighborFlush { af: AddressFamily::Ip6, sw_if_index: ALL }.handle(&call).unwrap();
    assert!(rows.count() < 64, "what is gone is not dumped");
}

#[test]
fn a_replacement_takes_away_what_is_not_entered_again() {
    let (router, port) = router();
    let call = Call::local(router.control());
    let all = ["10.0.0.8", "10.0.0.9", "2001:db8::8", "2001:db8::9"].map(|a| neighbor(&port, a, STATIC));
    for one in all {
        set(&call, true, one).unwrap();
    }
    IpNeighborReplaceBegin {}.handle(&call).unwrap();
    set(&call, true, all[1]).unwrap();
    set(&call, true, all[3]).unwrap();
    set(&call, true, neighbor(&port, "10.0.0.7", 0)).unwrap();
    IpNeighborReplaceEnd {}.handle(&call).unwrap();
    let left: Vec<_> = dump(&call, AddressFamily::Ip4, ALL).iter().map(|n| n.ip_address).collect();
    assert_eq!(left, [ip("10.0.0.7"), ip("10.0.0.9")]);
    assert_eq!(dump(&call, AddressFamily::Ip6, ALL), [all[3]]);
    // Without a beginning there is no end.
    IpNeighborReplaceEnd {}.handle(&call).unwrap();
    assert_eq!(dump(&call, AddressFamily::Ip4, ALL).len(), 2);
}

#[test]
fn clients_are_told_of_neighbours_they_want_to_know_of() {
    let (mut router, port) = router();
    let (one, all, old) = {
        let new = || Listener::new(&router, &[&API]);
        (new(), new(), new())
    };
    let want = |ip, enable| WantIpNeighborEventsV2 { enable, pid: 7, ip, sw_if_index: ALL };
    want(ip("2001:db8::9"), true).handle(&one.call(&router)).unwrap();
    want(ip("0.0.0.0"), true).handle(&all.call(&router)).unwrap();
    assert_eq!(want(ip("0.0.0.0"), true).handle(&all.call(&router)), Err(Retval::INVALID_REGISTRATION));
    let here = InterfaceIndex(port.index().0);
    let v1 = |sw_if_index| WantIpNeighborEvents { enable: true, pid: 7, ip: ip("::"), sw_if_index };
    v1(here).handle(&old.call(&router)).unwrap();
    assert_eq!(v1(InterfaceIndex(77)).handle(&old.call(&router)), Err(Retval::INVALID_SW_IF_INDEX));
    let call = Call::local(router.control());
    let (six, four) = (neighbor(&port, "2001:db8::9", STATIC), neighbor(&port, "10.0.0.9", STATIC));
    set(&call, true, six).unwrap();
    set(&call, true, six).unwrap();
    set(&call, true, four).unwrap();
    set(&call, false, six).unwrap();
    let seen = |listener: &Listener| -> Vec<_> {
        let events = listener.events::<IpNeighborEventV2>();
        events.into_iter().map(|e| (e.flags.0, e.neighbor)).collect()
    };
    assert_eq!(seen(&one), [(1, six), (2, six)]);
    assert_eq!(seen(&all), [(1, six), (1, four), (2, six)]);
    let events: Vec<_> = old.events::<IpNeighborEvent>().into_iter().map(|e| e.neighbor).collect();
    assert_eq!(events, [six, four]);
    // Claims from the network are reported, too.
    router.send(&port, PacketBuilder::arp_request(PEER_MAC, shoal_testkit::PEER, US).build());
    assert_eq!(seen(&all).len(), 1);
    want(ip("0.0.0.0"), false).handle(&all.call(&router)).unwrap();
    assert_eq!(want(ip("0.0.0.0"), false).handle(&all.call(&router)), Err(Retval::INVALID_REGISTRATION));
    one.leave(&router);
    set(&call, true, six).unwrap();
    assert!(seen(&all).is_empty() && seen(&one).is_empty());
    router.interfaces().delete(port.index()).unwrap();
    router.advance(Duration::from_secs(1));
    assert!(Families::of(router.control()).all().iter().all(|(_, n)| n.count() == 0));
}
