//! Packets and bytes by adjacency: counted when asked, and no dearer when not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod common;

use common::{neighbour, node, route, station, to, two_hosts, udp, via};
use shoal_adj::{AdjError, AdjIndex, AdjKind, Adjacencies, Counted, Counting};
use shoal_testkit::{Port, Router};

/// The neighbour behind a port.
fn next_hop(router: &Router, port: &Port) -> AdjIndex {
    let all = router.get::<Adjacencies>().list();
    let here = |(i, adj, _): &(AdjIndex, shoal_adj::Adj, usize)| {
        adj.kind() == AdjKind::Rewrite
            && adj.tx() == port.index()
            && adj.own() == *i
            && adj.next_hop() == "10.0.1.2".parse().ok()
    };
    all.iter().find(|row| here(row)).unwrap().0
}

fn vectors(router: &Router, name: &str) -> u64 {
    router.graph().graph_counters().vectors.sum(node(router, name).number() as usize)
}

/// By a route, so that a path list is between.
fn by_route(a: &Port) -> Vec<u8> {
    to(a).ip4([10, 0, 0, 2], [20, 0, 0, 1]).udp(1000, 2000).payload_len(20).build()
}

#[test]
fn counts_begin_when_asked_and_the_superpath_is_whole_without_them() {
    let (mut router, a, b) = two_hosts();
    route(&router, "20.0.0.0/8", via("10.0.1.2", &b));
    let (adjacencies, index) = (router.get::<Adjacencies>(), next_hop(&router, &b));
    router.send(&a, udp(&a).build());
    assert_eq!(
        (b.received().len(), adjacencies.counted_by(index), vectors(&router, "ip4-rewrite")),
        (1, None, 0)
    );
    adjacencies.count(Counted::All, Counting::On).unwrap();
    assert_eq!(adjacencies.counted_by(index), Some((0, 0)));
    let plain = udp(&a).build();
    for _ in 0..3 {
        router.send(&a, &plain);
    }
    router.send(&a, by_route(&a));
    let bytes = 3 * plain.len() as u64 + 62;
    assert_eq!((b.received().len(), adjacencies.counted_by(index)), (4, Some((4, bytes))));
    assert_eq!(router.counter("/net/adjacency"), if own_path_list(&router, index) { 5 } else { 4 });
    assert_eq!(vectors(&router, "ip4-rewrite"), 4, "counted packets leave the superpath there");
    adjacencies.count(Counted::All, Counting::Off).unwrap();
    router.send(&a, &plain);
    assert_eq!(
        (b.received().len(), adjacencies.counted_by(index), vectors(&router, "ip4-rewrite")),
        (1, None, 4)
    );
    adjacencies.count(Counted::All, Counting::On).unwrap();
    assert_eq!(adjacencies.counted_by(index), Some((0, 0)), "it begins anew");
}

/// Whether the route's leaf is an adjacency of its path list, which counts too.
fn own_path_list(router: &Router, neighbour: AdjIndex) -> bool {
    let all = router.get::<Adjacencies>().list();
    all.iter().any(|(i, adj, _)| *i != neighbour && adj.own() == neighbour)
}

#[test]
fn counted_packets_are_the_same_packets() {
    let (mut router, a, b) = two_hosts();
    let send = |router: &mut Router| {
        router.send(&a, udp(&a).build());
        router.send(&a, udp(&a).ttl(1).build());
        router.send(&a, udp(&a).payload_len(1400).build());
        (b.received(), a.received().len())
    };
    let before = send(&mut router);
    router.get::<Adjacencies>().count(Counted::All, Counting::On).unwrap();
    let after = send(&mut router);
    assert_eq!(before, after);
    assert_eq!(before.0.len(), 2);
}

#[test]
fn one_may_count_alone_and_keeps_counting_when_its_neighbour_changes() {
    let (mut router, a, b) = two_hosts();
    let (adjacencies, index) = (router.get::<Adjacencies>(), next_hop(&router, &b));
    adjacencies.count(Counted::One(index), Counting::On).unwrap();
    neighbour(&router, &b, "10.0.1.2", station(9));
    router.send(&a, udp(&a).build());
    assert_eq!(b.received_one()[..6], station(9).0);
    assert_eq!(adjacencies.counted_by(index).map(|(packets, _)| packets), Some(1));
    let others = adjacencies.list().into_iter().filter(|(i, adj, _)| *i != index && adj.is_counted());
    assert!(others.into_iter().all(|(_, adj, _)| adj.own() == index));
    adjacencies.count(Counted::One(index), Counting::Off).unwrap();
    assert_eq!(adjacencies.counted_by(index), None);
    assert_eq!(adjacencies.check(), Vec::<String>::new());
}

#[test]
fn what_cannot_count_is_refused_and_named() {
    let (router, _, b) = two_hosts();
    let (adjacencies, index) = (router.get::<Adjacencies>(), next_hop(&router, &b));
    let nobody = adjacencies.count(Counted::One(AdjIndex(99_999)), Counting::On).unwrap_err();
    assert!(matches!(nobody, AdjError::NoAdjacency { index: AdjIndex(99_999), .. }), "{nobody}");
    let special = adjacencies.list().into_iter().find(|(_, adj, _)| adj.kind() == AdjKind::Local).unwrap().0;
    assert_eq!(adjacencies.count(Counted::One(special), Counting::On), Err(AdjError::NoHeader(special)));
    adjacencies.count(Counted::All, Counting::On).unwrap();
    assert_eq!(adjacencies.count(Counted::One(index), Counting::Off), Err(AdjError::AllCount(index)));
    assert!(adjacencies.all_count());
}
