//! Routes that have packets received again, and routes that count.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod common;

use common::{DISLIKED, Toy, look_up_in, route, route_in, station, table, two_hosts, udp, via};
use shoal_adj::Counting;
use shoal_fib::{Family, Fib, FibIndex, Source, Via};
use shoal_graph::PacketNode;
use shoal_ip6::{Ip6, UNICAST_ARC};
use shoal_testkit::{Port, Router};
use shoal_wire::IpPrefix;

const UNSPECIFIED: std::net::Ipv6Addr = std::net::Ipv6Addr::UNSPECIFIED;
const NODE: &str = "interface-rx-dpo-ip6";
const FAMILY: Family = Family::Ip6;
const FAR: &str = "2001:db8:f::/48";
const FAR_HOST: std::net::Ipv6Addr = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 9);
const NEXT: &str = "2001:db8:1::2";
/// Bytes of [`far`] from the network header on.
const BYTES: u64 = 68;

fn received_by(port: &Port) -> Via {
    Via::InterfaceRx { interface: port.index() }
}

/// UDP from host 1 to a host behind [`FAR`].
fn far(port: &Port) -> Vec<u8> {
    common::to(port).ip6(common::ip(common::HOST_1), FAR_HOST).udp(1000, 2000).payload_len(20).build()
}

/// The router of two hosts with a third port, whose table is another one in which [`FAR`] is behind host 2.
fn with_other() -> (Router, Port, Port, Port, FibIndex) {
    let (mut router, a, b) = two_hosts();
    let c = router.pg(2);
    let other = table(&router, 10);
    router.get::<Ip6>().set_table(c.index(), 10).unwrap();
    common::address(&router, &c, "2001:db8:2::1/64");
    route_in(&router, other, FAR, via(NEXT, &b));
    (router, a, b, c, other)
}

fn prefix() -> IpPrefix {
    FAR.parse().unwrap()
}

fn counted(router: &Router, fib: FibIndex) -> Option<(u64, u64)> {
    router.get::<Fib>().entry(fib, prefix()).unwrap().counted
}

fn count(router: &Router, counting: Counting) {
    router.get::<Fib>().count_route(FibIndex(0), prefix(), counting).unwrap();
}

#[test]
fn packets_are_received_again_with_the_features_and_the_table_of_that_interface() {
    let (mut router, a, b, c, _) = with_other();
    route(&router, FAR, received_by(&c));
    router.interfaces().enable_feature(UNICAST_ARC, Toy::<0>::NAME, c.index(), true).unwrap();
    let before = router.if_counter("/if/rx", c.index());
    router.send(&a, far(&a));
    assert_eq!(b.received_one()[..6], station(2).0);
    assert_eq!(router.error(Toy::<0>::NAME, "a toy saw the packet"), 1);
    assert_eq!(router.if_counter("/if/rx", c.index()), before + 1);
    let mut disliked = far(&a);
    *disliked.last_mut().unwrap() = DISLIKED;
    router.send(&a, disliked);
    assert_eq!((b.received().len(), router.error(Toy::<0>::NAME, "a toy did not like the packet")), (0, 1));
    // Others know nothing of it.
    router.send(&a, udp(&a).build());
    b.received_one();
    assert_eq!(router.error(Toy::<0>::NAME, "a toy saw the packet"), 2);
}

#[test]
fn an_interface_that_is_down_or_without_the_family_receives_nothing() {
    let (mut router, a, b, c, _) = with_other();
    route(&router, FAR, received_by(&c));
    router.interfaces().set_admin(c.index(), false).unwrap();
    router.send(&a, far(&a));
    assert_eq!((b.received().len(), router.error(NODE, "interface is down")), (0, 1));
    router.interfaces().set_admin(c.index(), true).unwrap();
    let d = router.pg(3);
    route(&router, FAR, received_by(&d));
    router.send(&a, far(&a));
    assert_eq!((b.received().len(), router.errors().len()), (0, 2), "{:?}", router.errors());
    // The interface takes the route along.
    router.interfaces().delete(d.index()).unwrap();
    assert!(router.get::<Fib>().entry(FibIndex(0), prefix()).is_err());
}

#[test]
fn a_circle_of_such_routes_ends() {
    let (mut router, a, b, c, other) = with_other();
    route(&router, FAR, received_by(&c));
    route_in(&router, other, FAR, received_by(&a));
    router.send(&a, far(&a));
    assert_eq!(router.error(NODE, "routes have it received again and again"), 1);
    route(&router, FAR, received_by(&a));
    router.send(&a, far(&a));
    assert_eq!(router.error(NODE, "routes have it received again and again"), 2);
    assert!(b.received().is_empty());
}

#[test]
fn shares_of_flows_may_be_received_again() {
    let (mut router, a, b, c, _) = with_other();
    let paths = [received_by(&c).into(), via(NEXT, &b)];
    router.get::<Fib>().add(FibIndex(0), prefix(), Source::Cli, &paths).unwrap();
    for flow in 0..64u16 {
        let packet =
            common::to(&a).ip6(common::ip(common::HOST_1), FAR_HOST).udp(flow, 2).payload_len(20).build();
        router.send(&a, packet);
    }
    assert_eq!(b.received().len(), 64);
    let again = router.if_counter("/if/rx", c.index());
    assert!((8..56).contains(&again), "{again}");
}

#[test]
fn a_route_counts_from_when_it_is_asked_to_and_others_do_not() {
    let (mut router, a, b) = two_hosts();
    route(&router, FAR, via(NEXT, &b));
    assert_eq!(counted(&router, FibIndex(0)), None);
    count(&router, Counting::On);
    for n in 1..=3 {
        router.send(&a, far(&a));
        router.send(&a, udp(&a).build());
        assert_eq!((b.received().len(), counted(&router, FibIndex(0))), (2, Some((n, n * BYTES))));
    }
    assert_eq!(router.counter("/net/route/to"), 3);
    // Counting again begins nothing anew, and another way is still the route's.
    count(&router, Counting::On);
    route(&router, FAR, Via::Unreachable);
    router.send(&a, far(&a));
    assert_eq!(counted(&router, FibIndex(0)), Some((4, 4 * BYTES)));
    assert_eq!(a.received().len(), 1, "the sender is told as without a counter");
    route(&router, FAR, via(NEXT, &b));
    count(&router, Counting::Off);
    router.send(&a, far(&a));
    assert_eq!((b.received().len(), counted(&router, FibIndex(0))), (1, None));
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn routes_of_several_ways_of_other_tables_and_of_our_own_count_too() {
    let (mut router, a, b, c, other) = with_other();
    let fib = router.get::<Fib>();
    fib.add(FibIndex(0), prefix(), Source::Cli, &[look_up_in(other), via(NEXT, &b)]).unwrap();
    count(&router, Counting::On);
    fib.count_route(other, prefix(), Counting::On).unwrap();
    for flow in 0..64u16 {
        let packet =
            common::to(&a).ip6(common::ip(common::HOST_1), FAR_HOST).udp(flow, 2).payload_len(20).build();
        router.send(&a, packet);
    }
    assert_eq!((b.received().len(), counted(&router, FibIndex(0)).unwrap().0), (64, 64));
    let there = counted(&router, other).unwrap().0;
    assert!((8..56).contains(&there), "{there}");
    drop(c);
    // All of a table: also what is connected, what is the router's own, and what asks for neighbours.
    fib.count_routes(FAMILY, FibIndex(0), Counting::On).unwrap();
    let echo = common::to(&a)
        .ip6(common::ip(common::HOST_1), common::ip("2001:db8::1"))
        .icmp6_echo_request(1, 1)
        .payload_len(20)
        .build();
    router.send(&a, echo);
    a.received_one();
    router.send(&a, udp(&a).build());
    b.received_one();
    assert_eq!(fib.check(), Vec::<String>::new());
    fib.count_routes(FAMILY, FibIndex(0), Counting::Off).unwrap();
    assert_eq!(counted(&router, FibIndex(0)), None);
    router.send(&a, udp(&a).build());
    b.received_one();
    assert_eq!(fib.check(), Vec::<String>::new());
}

#[test]
fn neighbours_of_another_table_s_link_are_met_without_asking() {
    let (mut router, _, b, c, other) = with_other();
    // From `pg2`, which belongs to table 10, to host 2 on `pg1`, which belongs to table 0.
    let attached = Via::Attached { interface: b.index(), source: UNSPECIFIED.into() };
    route_in(&router, other, "2001:db8:1::/64", attached);
    router.send(&c, udp(&c).build());
    assert_eq!(b.received_one()[..6], station(2).0);
    // Once they are gone there is only the route, and the question.
    router.get::<Fib>().remove(other, "2001:db8:1::/64".parse::<IpPrefix>().unwrap(), Source::Cli).unwrap();
    router.send(&c, udp(&c).build());
    assert!(b.received().is_empty());
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}
