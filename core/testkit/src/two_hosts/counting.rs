//! Packets and bytes by adjacency: counted when asked, and no dearer when not.
#![allow(missing_docs)] // the names of tests are sentences

use shoal_adj::{AdjError, AdjIndex, AdjKind, Adjacencies, Counted, Counting};

use super::{TwoHosts, route, station, via};
use crate::{Port, Router};

/// Tests of what adjacencies count, in the family of a [`TwoHosts`](crate::two_hosts::TwoHosts). Each body of this file is named
/// here.
#[macro_export]
macro_rules! tests_of_counting {
    ($on:expr) => {
        $crate::tests_of! { $on, counting:
            counts_begin_when_asked_and_the_superpath_is_whole_without_them
            counted_packets_are_the_same_packets
            one_may_count_alone_and_keeps_counting_when_its_neighbour_changes
            what_cannot_count_is_refused_and_named
        }
    };
}

/// The neighbour behind a port.
fn next_hop(on: &TwoHosts, router: &Router, port: &Port) -> AdjIndex {
    let all = router.get::<Adjacencies>().list();
    let here = |(i, adj, _): &(AdjIndex, shoal_adj::Adj, usize)| {
        adj.kind() == AdjKind::Rewrite
            && adj.tx() == port.index()
            && adj.own() == *i
            && adj.next_hop() == on.hosts[1].parse().ok()
    };
    all.iter().find(|row| here(row)).unwrap().0
}

fn vectors(router: &Router, name: &str) -> u64 {
    let node = router.graph().node(name).unwrap();
    router.graph().graph_counters().vectors.sum(node.number() as usize)
}

/// By a route, so that a path list is between.
fn by_route(on: &TwoHosts, a: &Port) -> Vec<u8> {
    on.towards(a, on.far_host).udp(1000, 2000).payload_len(20).build()
}

pub fn counts_begin_when_asked_and_the_superpath_is_whole_without_them(on: &TwoHosts) {
    let (mut router, a, b) = (on.make)();
    let rewrite = format!("{}-rewrite", on.family);
    route(&router, on.far, via(on.hosts[1], &b));
    let (adjacencies, index) = (router.get::<Adjacencies>(), next_hop(on, &router, &b));
    router.send(&a, on.udp(&a).build());
    assert_eq!((b.received().len(), adjacencies.counted_by(index), vectors(&router, &rewrite)), (1, None, 0));
    adjacencies.count(Counted::All, Counting::On).unwrap();
    assert_eq!(adjacencies.counted_by(index), Some((0, 0)));
    let plain = on.udp(&a).build();
    for _ in 0..3 {
        router.send(&a, &plain);
    }
    router.send(&a, by_route(on, &a));
    let bytes = 3 * plain.len() as u64 + 14 + on.bytes();
    assert_eq!((b.received().len(), adjacencies.counted_by(index)), (4, Some((4, bytes))));
    assert_eq!(router.counter("/net/adjacency"), if own_path_list(&router, index) { 5 } else { 4 });
    assert_eq!(vectors(&router, &rewrite), 4, "counted packets leave the superpath there");
    adjacencies.count(Counted::All, Counting::Off).unwrap();
    router.send(&a, &plain);
    assert_eq!((b.received().len(), adjacencies.counted_by(index), vectors(&router, &rewrite)), (1, None, 4));
    adjacencies.count(Counted::All, Counting::On).unwrap();
    assert_eq!(adjacencies.counted_by(index), Some((0, 0)), "it starts from zero");
}

/// Whether the route's leaf is an adjacency of its path list, which counts too.
fn own_path_list(router: &Router, neighbour: AdjIndex) -> bool {
    let all = router.get::<Adjacencies>().list();
    all.iter().any(|(i, adj, _)| *i != neighbour && adj.own() == neighbour)
}

pub fn counted_packets_are_the_same_packets(on: &TwoHosts) {
    let (mut router, a, b) = (on.make)();
    let send = |router: &mut Router| {
        router.send(&a, on.udp(&a).build());
        router.send(&a, on.udp(&a).ttl(1).build());
        router.send(&a, on.udp(&a).payload_len(1400).build());
        (b.received(), a.received().len())
    };
    let before = send(&mut router);
    router.get::<Adjacencies>().count(Counted::All, Counting::On).unwrap();
    let after = send(&mut router);
    assert_eq!(before, after);
    assert_eq!(before.0.len(), 2);
}

pub fn one_may_count_alone_and_keeps_counting_when_its_neighbour_changes(on: &TwoHosts) {
    let (mut router, a, b) = (on.make)();
    let (adjacencies, index) = (router.get::<Adjacencies>(), next_hop(on, &router, &b));
    adjacencies.count(Counted::One(index), Counting::On).unwrap();
    (on.neighbour)(&router, &b, on.hosts[1], station(9));
    router.send(&a, on.udp(&a).build());
    assert_eq!(b.received_one()[..6], station(9).0);
    assert_eq!(adjacencies.counted_by(index).map(|(packets, _)| packets), Some(1));
    let others = adjacencies.list().into_iter().filter(|(i, adj, _)| *i != index && adj.is_counted());
    assert!(others.into_iter().all(|(_, adj, _)| adj.own() == index));
    adjacencies.count(Counted::One(index), Counting::Off).unwrap();
    assert_eq!(adjacencies.counted_by(index), None);
    assert_eq!(adjacencies.check(), Vec::<String>::new());
}

pub fn what_cannot_count_is_refused_and_named(on: &TwoHosts) {
    let (router, _, b) = (on.make)();
    let (adjacencies, index) = (router.get::<Adjacencies>(), next_hop(on, &router, &b));
    let unknown = adjacencies.count(Counted::One(AdjIndex(99_999)), Counting::On).unwrap_err();
    assert!(matches!(unknown, AdjError::NoAdjacency { index: AdjIndex(99_999), .. }), "{unknown}");
    let special = adjacencies.list().into_iter().find(|(_, adj, _)| adj.kind() == AdjKind::Local).unwrap().0;
    assert_eq!(adjacencies.count(Counted::One(special), Counting::On), Err(AdjError::NoHeader(special)));
    adjacencies.count(Counted::All, Counting::On).unwrap();
    assert_eq!(adjacencies.count(Counted::One(index), Counting::Off), Err(AdjError::AllCount(index)));
    assert!(adjacencies.all_count());
}
