//! On and off, addresses that follow interfaces, bad input, saved configuration, traces.

use std::net::Ipv4Addr;

use shoal_ip4::Ip4;
use shoal_module::Running;
use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ed::config::Timeouts;
use shoal_nat44_ed::mapping::External;
use shoal_nat44_ed::{Enable, Nat44, NatError, OfInterface, Purpose, Side, Spec};

use crate::common::{SHARED, bed, plain, spec, tuple};

#[test]
fn while_it_is_off_nothing_can_be_set_and_packets_pass() {
    let mut bed = plain();
    let nat = bed.router.get::<Nat44>();
    let (address, i) = (Ipv4Addr::new(192, 0, 2, 100), bed.inside.index());
    assert_eq!(nat.add_addresses((address, address), Purpose::Pool, None), Err(NatError::Off("nat44")));
    assert_eq!(nat.set_side(i, Side::Inside, true), Err(NatError::Off("nat44")));
    assert_eq!(nat.set_output(i, true), Err(NatError::Off("nat44")));
    assert_eq!(nat.set_forwarding(true), Err(NatError::Off("nat44")));
    assert_eq!(nat.set_timeouts(Timeouts::default()), Err(NatError::Off("nat44")));
    assert_eq!(nat.set_limit(0, 5), Err(NatError::Off("nat44")));
    assert_eq!(nat.set_mss(5), Err(NatError::Off("nat44")));
    assert_eq!(nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 80), TCP)), Err(NatError::Off("nat44")));
    assert_eq!(nat.disable_nat(), Err(NatError::AlreadyOff));
    assert_eq!(nat.set_vrf_table(3, true), Err(NatError::Off("nat44")));
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(asked, UDP, 0)));
}

#[test]
fn it_can_be_switched_off_and_on_and_leaves_nothing_behind() {
    let mut bed = bed();
    bed.share(SHARED);
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    bed.out(asked, UDP, 0).unwrap();
    let nat = bed.nat();
    nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 80), TCP)).unwrap();
    assert_eq!(nat.enable_nat(Enable::default()), Err(NatError::AlreadyOn));
    nat.disable_nat().unwrap();
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(asked, UDP, 0)));
    assert_eq!(bed.router.counter("/nat44-ed/total-sessions"), 0);
    nat.enable_nat(Enable { sessions: 5, ..Enable::default() }).unwrap();
    assert!(nat.mappings().is_empty() && nat.addresses().is_empty() && nat.sides().is_empty());
    nat.disable_nat().unwrap();
    let many = Enable { sessions: u32::MAX, ..Enable::default() };
    assert!(matches!(nat.enable_nat(many), Err(NatError::Sessions { .. })));
    assert!(!nat.is_on());
}

#[test]
fn addresses_of_interfaces_are_followed() {
    let mut bed = bed();
    let (nat, ip4, i) = (bed.nat(), bed.router.get::<Ip4>(), bed.outside.index());
    let of = OfInterface { interface: i, purpose: Purpose::Pool };
    nat.follow_interface(of).unwrap();
    assert!(matches!(nat.follow_interface(of), Err(NatError::Interface(_))));
    let mapping = Spec { external: External::Interface(i), ..spec(("10.0.0.5", 80), (SHARED, 80), TCP) };
    nat.add_mapping(mapping.clone()).unwrap();
    let now = |nat: &Nat44| nat.addresses().first().map(|a| (a.address.to_string(), a.synced));
    assert_eq!(now(&nat), Some(("192.0.2.1".into(), true)));
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let left = tuple(("192.0.2.1", 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(left, UDP, 0)));
    let came = tuple(("192.0.2.2", 9), ("10.0.0.5", 80));
    assert_eq!(bed.back(tuple(("192.0.2.2", 9), ("192.0.2.1", 80)), TCP, 2), Some(bed.came(came, TCP, 2)));
    ip4.add_address(i, "192.0.2.9/24".parse().unwrap()).unwrap();
    ip4.del_address(i, "192.0.2.1/24".parse().unwrap()).unwrap();
    assert_eq!(now(&nat), Some(("192.0.2.9".into(), true)));
    assert_eq!(bed.sessions().len(), 0, "sessions of the old address are gone");
    assert_eq!(bed.back(tuple(("192.0.2.2", 9), ("192.0.2.9", 80)), TCP, 2), Some(bed.came(came, TCP, 2)));
    ip4.del_all(i).unwrap();
    assert_eq!((now(&nat), nat.mappings()[0].1), (None, None));
    nat.unfollow_interface(of).unwrap();
    nat.del_mapping(&mapping).unwrap();
    assert!(matches!(nat.unfollow_interface(of), Err(NatError::NoInterface(_))));
}

#[test]
fn ranges_of_addresses_come_and_go_with_their_sessions() {
    let mut bed = bed();
    let nat = bed.nat();
    let a = |n| Ipv4Addr::new(192, 0, 2, n);
    nat.add_addresses((a(100), a(103)), Purpose::Pool, None).unwrap();
    assert_eq!(
        nat.add_addresses((a(103), a(104)), Purpose::Pool, None),
        Err(NatError::AddressExists(a(103)))
    );
    assert_eq!(nat.add_addresses((a(9), a(8)), Purpose::Pool, None), Err(NatError::Range(a(9), a(8))));
    assert_eq!(nat.addresses().len(), 4);
    bed.out(tuple(("10.0.0.2", 5000), ("192.0.2.2", 80)), UDP, 0).unwrap();
    let used = bed.sessions()[0].session.outside.source().0;
    let other = (100..104).map(a).find(|address| *address != used).unwrap();
    nat.del_addresses((other, other), Purpose::Pool).unwrap();
    assert_eq!(bed.sessions().len(), 1, "another's sessions stay");
    nat.del_addresses((used, used), Purpose::Pool).unwrap();
    assert_eq!(bed.sessions().len(), 0);
    assert_eq!(nat.del_addresses((used, used), Purpose::Pool), Err(NatError::NoAddress(used)));
}

#[test]
fn the_router_answers_for_shared_addresses() {
    let mut bed = bed();
    bed.share(SHARED);
    let asks = shoal_testkit::PacketBuilder::arp_request(
        shoal_wire::MacAddress([2, 0xbb, 0, 0, 0, 2]),
        [192, 0, 2, 2],
        [192, 0, 2, 100],
    );
    bed.send_outside(asks.build());
    assert_eq!(bed.outside.received().len(), 1, "{:?}", bed.router.errors());
}

#[test]
fn an_interface_that_goes_takes_its_part_and_nothing_else() {
    let mut bed = bed();
    bed.share(SHARED);
    let nat = bed.nat();
    let i = bed.outside.index();
    nat.add_mapping(Spec { external: External::Interface(i), ..spec(("10.0.0.5", 80), (SHARED, 80), TCP) })
        .unwrap();
    nat.follow_interface(OfInterface { interface: i, purpose: Purpose::Twice }).unwrap();
    bed.router.generator().delete_interface(i).unwrap();
    assert_eq!(nat.sides().len(), 1);
    assert!(nat.mappings().is_empty() && nat.followed().is_empty());
    assert_eq!(nat.addresses().len(), 1);
    bed.router.run();
}

#[test]
fn times_and_limits_are_checked_and_sessions_follow_at_once() {
    let mut bed = bed();
    bed.share(SHARED);
    let nat = bed.nat();
    let none = Timeouts { udp: 0, ..Timeouts::default() };
    assert!(matches!(nat.set_timeouts(none), Err(NatError::Timeout { value: 0, .. })));
    let long = Timeouts { icmp: u32::MAX, ..Timeouts::default() };
    assert!(matches!(nat.set_timeouts(long), Err(NatError::Timeout { .. })));
    assert_eq!(nat.set_limit(0, 0), Err(NatError::Limit { value: 0 }));
    assert!(matches!(nat.set_limit(77, 5), Err(NatError::Fib(_))));
    bed.out(tuple(("10.0.0.2", 5000), ("192.0.2.2", 80)), UDP, 0).unwrap();
    nat.set_timeouts(Timeouts { udp: 5, ..Timeouts::default() }).unwrap();
    bed.advance(20);
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn sessions_are_listed_by_host_and_ended_one_by_one() {
    let mut bed = bed();
    bed.share(SHARED);
    for port in 5000..5003 {
        bed.out(tuple(("10.0.0.2", port), ("192.0.2.2", 80)), UDP, 0).unwrap();
    }
    bed.out(tuple(("10.0.0.3", 1), ("192.0.2.2", 80)), UDP, 0).unwrap();
    let users = bed.nat().users().unwrap();
    let seen: Vec<_> = users.iter().map(|u| (u.address.to_string(), u.vrf, u.sessions, u.statics)).collect();
    assert_eq!(seen, [("10.0.0.2".to_owned(), 0, 3, 0), ("10.0.0.3".to_owned(), 0, 1, 0)]);
    let (host, other) = (("10.0.0.2".parse().unwrap(), 5001), ("192.0.2.2".parse().unwrap(), 80));
    bed.nat().del_session(host, other, UDP, 0).unwrap();
    assert_eq!(bed.nat().del_session(host, other, UDP, 0), Err(NatError::NoSession));
    assert_eq!(bed.nat().del_session(host, other, TCP, 0), Err(NatError::NoSession));
    assert_eq!((bed.sessions().len(), bed.router.counter("/nat44-ed/total-sessions")), (3, 3));
    bed.nat().clear_sessions().unwrap();
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn what_was_configured_is_saved() {
    let bed = bed();
    bed.share(SHARED);
    let nat = bed.nat();
    nat.set_mss(1400).unwrap();
    nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    nat.add_mapping(Spec { identity: true, ..spec(("10.0.0.8", 0), ("10.0.0.8", 0), 0) }).unwrap();
    nat.set_vrf_table(7, true).unwrap();
    nat.set_vrf_route(7, 8, true).unwrap();
    let mut running = Running::default();
    (shoal_nat44_ed::MODULE.running)(bed.router.control(), &mut running);
    let text: String = running.pieces().collect();
    for line in [
        "nat44 plugin enable sessions 1000",
        "set interface nat44 in pg0",
        "set interface nat44 out pg1",
        "nat44 add address 192.0.2.100",
        "nat mss-clamping 1400",
        "nat44 add static mapping tcp local 10.0.0.5 80 external 192.0.2.100 8080",
        "nat44 add identity mapping 10.0.0.8",
        "nat44 vrf table add 7",
        "nat44 vrf route add table 7 8",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
    }
}

#[test]
fn traces_say_what_was_looked_for_and_what_came_of_it() {
    let mut bed = bed();
    bed.share(SHARED);
    bed.router.trace_add("pg-input", 10);
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    bed.out(asked, UDP, 0).unwrap();
    bed.out(asked, UDP, 0).unwrap();
    let trace = bed.router.trace();
    for line in [
        "search key local 10.0.0.2:5000 remote 192.0.2.2:80 proto UDP fib 0 thread-index 0 slow path because lookup failed",
        "NAT44_IN2OUT_ED_SLOW_PATH: sw_if_index",
        "rewrite: saddr 192.0.2.100 daddr 192.0.2.2 txfib 0",
        "session-index 0",
    ] {
        assert!(trace.contains(line), "{line}:\n{trace}");
    }
}
