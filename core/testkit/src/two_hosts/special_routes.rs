//! Routes that have packets received again, and routes that count.
#![allow(missing_docs)] // the names of tests are sentences

use shoal_adj::Counting;
use shoal_fib::{Fib, FibIndex, Source, Via};
use shoal_graph::PacketNode;

use super::{TwoHosts, prefix, route, route_in, station, via};
use crate::toy::{DROPPED_BYTE, Toy};
use crate::{Port, Router};

/// Tests of such routes, in the family of a [`TwoHosts`](crate::two_hosts::TwoHosts). Each body of this file is named
/// here.
#[macro_export]
macro_rules! tests_of_special_routes {
    ($on:expr) => {
        $crate::tests_of! { $on, special_routes:
            packets_are_received_again_with_the_features_and_the_table_of_that_interface
            an_interface_that_is_down_or_without_the_family_receives_nothing
            a_circle_of_such_routes_ends
            a_route_may_look_up_the_source_in_another_table
            shares_of_flows_may_be_received_again
            a_route_counts_from_when_it_is_asked_to_and_others_do_not
            routes_of_several_ways_of_other_tables_and_of_our_own_count_too
            neighbours_of_another_table_s_link_are_met_without_asking
        }
    };
}

fn node(on: &TwoHosts) -> String {
    format!("interface-rx-dpo-{}", on.family)
}

fn received_by(port: &Port) -> Via {
    Via::InterfaceRx { interface: port.index() }
}

/// UDP from host 1 to the far host.
fn far(on: &TwoHosts, port: &Port, flow: u16) -> Vec<u8> {
    on.towards(port, on.far_host).udp(flow, 2000).payload_len(20).build()
}

/// The router of two hosts with a third port, whose table is another one in which the far network is behind host 2.
fn with_other(on: &TwoHosts) -> (Router, Port, Port, Port, FibIndex) {
    let (mut router, a, b) = (on.make)();
    let c = router.pg(2);
    let other = on.table_of(&router, &c, 10);
    on.address(&router, &c, on.third);
    route_in(&router, other, on.far, via(on.hosts[1], &b));
    (router, a, b, c, other)
}

fn counted(on: &TwoHosts, router: &Router, fib: FibIndex) -> Option<(u64, u64)> {
    router.get::<Fib>().entry(fib, prefix(on.far)).unwrap().counted
}

fn count(on: &TwoHosts, router: &Router, counting: Counting) {
    router.get::<Fib>().count_route(FibIndex(0), prefix(on.far), counting).unwrap();
}

pub fn packets_are_received_again_with_the_features_and_the_table_of_that_interface(on: &TwoHosts) {
    let (mut router, a, b, c, _) = with_other(on);
    route(&router, on.far, received_by(&c));
    router.interfaces().enable_feature(on.unicast_arc(), Toy::<0>::NAME, c.index(), true).unwrap();
    let before = router.if_counter("/if/rx", c.index());
    router.send(&a, far(on, &a, 1000));
    assert_eq!(b.received_one()[..6], station(2).0);
    assert_eq!(router.error(Toy::<0>::NAME, "a toy saw the packet"), 1);
    assert_eq!(router.if_counter("/if/rx", c.index()), before + 1);
    let mut disliked = far(on, &a, 1000);
    *disliked.last_mut().unwrap() = DROPPED_BYTE;
    router.send(&a, disliked);
    assert_eq!((b.received().len(), router.error(Toy::<0>::NAME, "a toy did not like the packet")), (0, 1));
    // Others know nothing of it.
    router.send(&a, on.udp(&a).build());
    b.received_one();
    assert_eq!(router.error(Toy::<0>::NAME, "a toy saw the packet"), 2);
}

pub fn an_interface_that_is_down_or_without_the_family_receives_nothing(on: &TwoHosts) {
    let (mut router, a, b, c, _) = with_other(on);
    route(&router, on.far, received_by(&c));
    router.interfaces().set_admin(c.index(), false).unwrap();
    router.send(&a, far(on, &a, 1000));
    assert_eq!((b.received().len(), router.error(&node(on), "interface is down")), (0, 1));
    router.interfaces().set_admin(c.index(), true).unwrap();
    let d = router.pg(3);
    route(&router, on.far, received_by(&d));
    router.send(&a, far(on, &a, 1000));
    assert_eq!((b.received().len(), router.errors().len()), (0, 2), "{:?}", router.errors());
    // The interface takes the route along.
    router.interfaces().delete(d.index()).unwrap();
    assert!(router.get::<Fib>().entry(FibIndex(0), prefix(on.far)).is_err());
}

pub fn a_circle_of_such_routes_ends(on: &TwoHosts) {
    let (mut router, a, b, c, other) = with_other(on);
    route(&router, on.far, received_by(&c));
    route_in(&router, other, on.far, received_by(&a));
    router.send(&a, far(on, &a, 1000));
    assert_eq!(router.error(&node(on), "routes have it received again and again"), 1);
    route(&router, on.far, received_by(&a));
    router.send(&a, far(on, &a, 1000));
    assert_eq!(router.error(&node(on), "routes have it received again and again"), 2);
    assert!(b.received().is_empty());
}

pub fn a_route_may_look_up_the_source_in_another_table(on: &TwoHosts) {
    let (mut router, a, b, _, other) = with_other(on);
    route(&router, on.far, Via::SourceLookup(other));
    router.send(&a, far(on, &a, 1000));
    assert!(b.received().is_empty(), "the other table does not know the sender");
    route_in(&router, other, &format!("{}/{}", on.hosts[0], on.family.max_len()), via(on.hosts[1], &b));
    router.send(&a, far(on, &a, 1000));
    b.received_one();
}

pub fn shares_of_flows_may_be_received_again(on: &TwoHosts) {
    let (mut router, a, b, c, _) = with_other(on);
    let paths = [received_by(&c).into(), via(on.hosts[1], &b)];
    router.get::<Fib>().add(FibIndex(0), prefix(on.far), Source::Cli, &paths).unwrap();
    for flow in 0..64u16 {
        router.send(&a, far(on, &a, flow));
    }
    assert_eq!(b.received().len(), 64);
    let again = router.if_counter("/if/rx", c.index());
    assert!((8..56).contains(&again), "{again}");
}

pub fn a_route_counts_from_when_it_is_asked_to_and_others_do_not(on: &TwoHosts) {
    let (mut router, a, b) = (on.make)();
    route(&router, on.far, via(on.hosts[1], &b));
    assert_eq!(counted(on, &router, FibIndex(0)), None);
    count(on, &router, Counting::On);
    for n in 1..=3 {
        router.send(&a, far(on, &a, 1000));
        router.send(&a, on.udp(&a).build());
        assert_eq!((b.received().len(), counted(on, &router, FibIndex(0))), (2, Some((n, n * on.bytes()))));
    }
    assert_eq!(router.counter("/net/route/to"), 3);
    // Counting again resets nothing, and another way is still the route's.
    count(on, &router, Counting::On);
    route(&router, on.far, Via::Unreachable);
    router.send(&a, far(on, &a, 1000));
    assert_eq!(counted(on, &router, FibIndex(0)), Some((4, 4 * on.bytes())));
    assert_eq!(a.received().len(), 1, "the sender is told as without a counter");
    route(&router, on.far, via(on.hosts[1], &b));
    count(on, &router, Counting::Off);
    router.send(&a, far(on, &a, 1000));
    assert_eq!((b.received().len(), counted(on, &router, FibIndex(0))), (1, None));
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

pub fn routes_of_several_ways_of_other_tables_and_of_our_own_count_too(on: &TwoHosts) {
    let (mut router, a, b, c, other) = with_other(on);
    let fib = router.get::<Fib>();
    fib.add(FibIndex(0), prefix(on.far), Source::Cli, &[Via::Lookup(other).into(), via(on.hosts[1], &b)])
        .unwrap();
    count(on, &router, Counting::On);
    fib.count_route(other, prefix(on.far), Counting::On).unwrap();
    for flow in 0..64u16 {
        router.send(&a, far(on, &a, flow));
    }
    assert_eq!((b.received().len(), counted(on, &router, FibIndex(0)).unwrap().0), (64, 64));
    let there = counted(on, &router, other).unwrap().0;
    assert!((8..56).contains(&there), "{there}");
    drop(c);
    // All of a table: also what is connected, what is the router's own, and what asks for neighbours.
    fib.count_routes(on.family, FibIndex(0), Counting::On).unwrap();
    router.send(&a, on.echo(&a).payload_len(20).build());
    a.received_one();
    router.send(&a, on.udp(&a).build());
    b.received_one();
    assert_eq!(fib.check(), Vec::<String>::new());
    fib.count_routes(on.family, FibIndex(0), Counting::Off).unwrap();
    assert_eq!(counted(on, &router, FibIndex(0)), None);
    router.send(&a, on.udp(&a).build());
    b.received_one();
    assert_eq!(fib.check(), Vec::<String>::new());
}

pub fn neighbours_of_another_table_s_link_are_met_without_asking(on: &TwoHosts) {
    let (mut router, _, b, c, other) = with_other(on);
    // From `pg2`, which belongs to table 10, to host 2 on `pg1`, which belongs to table 0.
    let attached = Via::Attached { interface: b.index(), source: on.unspecified() };
    route_in(&router, other, on.network, attached);
    router.send(&c, on.udp(&c).build());
    assert_eq!(b.received_one()[..6], station(2).0);
    // Once they are gone there is only the route, and the question.
    router.get::<Fib>().remove(other, prefix(on.network), Source::Cli).unwrap();
    router.send(&c, on.udp(&c).build());
    assert!(b.received().is_empty());
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}
