//! Several ways: shares, losses, what a change costs, and what may not be.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::net::{IpAddr, Ipv4Addr};

use router::{Router, ip, prefix, router};
use shoal_adj::{Adj, AdjKind, MOST_BUCKETS};
use shoal_fib::{Family, Fib, FibError, FibIndex, Path, Reach, Source, Via, consecutive};
use shoal_interface::SwIfIndex;

const ETH1: SwIfIndex = SwIfIndex(1);
const ETH2: SwIfIndex = SwIfIndex(2);
const MAIN: FibIndex = FibIndex::DEFAULT;

fn with_neighbours() -> Router {
    let router = router(3);
    for family in Family::ALL {
        let incomplete = |interface, _, _| Adj::on(AdjKind::Incomplete, interface, 1500);
        router.adjacencies.set_describe(family, std::rc::Rc::new(incomplete));
    }
    router
}

fn via(next_hop: &str, interface: SwIfIndex) -> Path {
    Path::next_hop(ip(next_hop), interface)
}

fn recursive(next_hop: &str) -> Path {
    Path::recursive(ip(next_hop), MAIN)
}

fn add(fib: &Fib, to: &str, paths: &[Path]) {
    fib.add(MAIN, prefix(to), Source::Cli, paths).unwrap();
}

fn shares(router: &Router, addr: &str) -> String {
    let all = router.shares(addr);
    all.iter().map(|(way, n)| format!("{n}x {way}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn flows_are_shared_by_weight() {
    let router = with_neighbours();
    add(&router.fib, "10.0.0.0/8", &[via("192.0.2.1", ETH1), via("192.0.2.2", ETH2).weight(3)]);
    assert_eq!(shares(&router, "10.1.1.1"), "1x Incomplete 1 192.0.2.1, 3x Incomplete 2 192.0.2.2");
    add(&router.fib, "2001:db8::/32", &[via("fe80::1", ETH1), via("fe80::2", ETH2)]);
    assert_eq!(shares(&router, "2001:db8::9"), "1x Incomplete 1 fe80::1, 1x Incomplete 2 fe80::2");
}

#[test]
fn a_member_that_goes_down_gives_its_share_to_the_others_and_comes_back() {
    let router = with_neighbours();
    let paths = [via("192.0.2.1", ETH1), via("192.0.2.2", ETH2), via("192.0.2.3", ETH2)];
    add(&router.fib, "10.0.0.0/8", &paths);
    let all = "1x Incomplete 1 192.0.2.1";
    assert!(shares(&router, "10.1.1.1").contains("Incomplete 1 192.0.2.1"), "{all}");
    router.fib.set_next_hop(ETH2, ip("192.0.2.3"), Reach::Down);
    assert_eq!(shares(&router, "10.1.1.1"), "1x Incomplete 1 192.0.2.1, 1x Incomplete 2 192.0.2.2");
    router.interfaces.set_admin(ETH2, false).unwrap();
    assert_eq!(shares(&router, "10.1.1.1"), "1x Incomplete 1 192.0.2.1");
    // Nothing is up: the packets meet what is down, and are counted there.
    router.interfaces.set_link(ETH1, false).unwrap();
    assert!(shares(&router, "10.1.1.1").contains("192.0.2.2"));
    router.interfaces.set_link(ETH1, true).unwrap();
    router.interfaces.set_admin(ETH2, true).unwrap();
    router.fib.set_next_hop(ETH2, ip("192.0.2.3"), Reach::Up);
    assert_eq!(router.shares("10.1.1.1").len(), 3);
    assert_eq!(router.fib.check(), Vec::<String>::new());
}

#[test]
fn a_path_of_higher_preference_takes_over_while_those_before_it_are_down() {
    let router = with_neighbours();
    add(&router.fib, "10.0.0.0/8", &[via("192.0.2.1", ETH1), via("192.0.2.2", ETH2).preference(1)]);
    assert_eq!(router.way("10.1.1.1"), "Incomplete 1 192.0.2.1");
    router.interfaces.set_admin(ETH1, false).unwrap();
    assert_eq!(router.way("10.1.1.1"), "Incomplete 2 192.0.2.2");
    router.interfaces.set_admin(ETH1, true).unwrap();
    assert_eq!(router.way("10.1.1.1"), "Incomplete 1 192.0.2.1");
}

#[test]
fn of_a_resilient_route_only_the_failed_share_moves() {
    let router = with_neighbours();
    let paths: Vec<Path> =
        (1..=8).map(|n| via(&format!("192.0.2.{n}"), ETH1).weight(1 + n % 3).resilient()).collect();
    add(&router.fib, "10.0.0.0/8", &paths);
    let buckets = || {
        let index = router.fib.lookup(MAIN, ip("10.1.1.1"));
        let (_, buckets) = router.adjacencies.members(index).unwrap();
        buckets.iter().map(|b| router.adjacencies.get(*b).next_hop().unwrap()).collect::<Vec<_>>()
    };
    let before = buckets();
    for gone in ["192.0.2.3", "192.0.2.8"] {
        let was = buckets();
        router.fib.set_next_hop(ETH1, ip(gone), Reach::Down);
        let is = buckets();
        assert_eq!(was.len(), is.len());
        assert!(was.iter().zip(&is).all(|(a, b)| *b != ip(gone) && (a == b || *a == ip(gone))));
        let was = is;
        router.fib.set_next_hop(ETH1, ip(gone), Reach::Up);
        let is = buckets();
        assert!(was.iter().zip(&is).all(|(a, b)| a == b || *b == ip(gone)), "only what it takes back moves");
    }
    assert_eq!(before.len(), buckets().len());
}

/// Where flows to an address go, bucket by bucket.
fn buckets(router: &Router, addr: &str) -> Vec<IpAddr> {
    let (_, buckets) = router.adjacencies.members(router.fib.lookup(MAIN, ip(addr))).unwrap();
    buckets.iter().map(|b| router.adjacencies.get(*b).next_hop().unwrap()).collect()
}

#[test]
fn of_a_resilient_route_that_gets_other_paths_only_their_share_moves() {
    let router = with_neighbours();
    let paths = |all: &[u8]| {
        let path = |n: &u8| via(&format!("192.0.2.{n}"), ETH1).buckets(120);
        all.iter().map(path).collect::<Vec<Path>>()
    };
    let prefixes = ["10.0.0.0/8", "11.0.0.0/8"];
    let now = || {
        let all = buckets(&router, "10.1.1.1");
        assert_eq!(all, buckets(&router, "11.1.1.1"), "all prefixes share them");
        all
    };
    let set = |all: &[u8]| prefixes.iter().for_each(|prefix| add(&router.fib, prefix, &paths(all)));
    set(&[1, 2, 3, 4, 5]);
    let first = now();
    assert_eq!(first.len(), 128, "at least what was asked for");
    // One goes, and another one.
    let two = ip("192.0.2.2");
    set(&[1, 3, 4, 5]);
    let without = now();
    assert!(first.iter().zip(&without).all(|(was, is)| *is != two && (was == is || *was == two)));
    // It comes back: it takes its share, and nothing else moves.
    set(&[1, 2, 3, 4, 5]);
    let again = now();
    assert!(without.iter().zip(&again).all(|(was, is)| was == is || *is == two));
    let share = again.iter().filter(|at| **at == two).count();
    assert!((24..=27).contains(&share), "{share}");
    // One is replaced by a new one, which gets what that had.
    set(&[1, 6, 3, 4, 5]);
    let replaced = now();
    assert!(again.iter().zip(&replaced).all(|(was, is)| was == is || *was == two));
    // More buckets than there can be, and none at all.
    add(&router.fib, "12.0.0.0/8", &paths(&[1, 2]).iter().map(|p| p.buckets(u16::MAX)).collect::<Vec<_>>());
    assert_eq!(buckets(&router, "12.1.1.1").len(), 1024);
    add(&router.fib, "12.0.0.0/8", &paths(&[1, 2]).iter().map(|p| p.buckets(0)).collect::<Vec<_>>());
    assert_eq!(buckets(&router, "12.1.1.1").len(), 1024, "fewer would move flows");
    // Others move all they like.
    add(&router.fib, "12.0.0.0/8", &[via("192.0.2.1", ETH1), via("192.0.2.2", ETH1)]);
    assert_eq!(buckets(&router, "12.1.1.1").len(), 2);
    prefixes
        .iter()
        .chain(&["12.0.0.0/8"])
        .for_each(|at| router.fib.remove(MAIN, prefix(at), Source::Cli).unwrap());
    assert_eq!(router.fib.check(), Vec::<String>::new());
}

#[test]
fn a_next_hop_shared_by_half_a_million_prefixes_is_withdrawn_by_a_few_stores() {
    let router = with_neighbours();
    let fib = &router.fib;
    add(fib, "172.16.0.0/24", &[via("192.0.2.1", ETH1)]);
    add(fib, "172.16.0.0/16", &[via("192.0.2.2", ETH2)]);
    let many = consecutive(prefix("20.0.0.0/24"), 500_000).unwrap();
    assert_eq!(fib.add_many(MAIN, many, Source::Api, &[recursive("172.16.0.1")]), Ok(500_000));
    assert_eq!(router.way("20.0.77.1"), "Incomplete 1 192.0.2.1");
    let before = fib.writes();
    fib.remove(MAIN, prefix("172.16.0.0/24"), Source::Cli).unwrap();
    let after = fib.writes();
    // The withdrawn route itself, and the record all prefixes share.
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    for addr in ["20.0.0.1", "20.0.77.1", "27.161.31.1"] {
        assert_eq!(router.way(addr), "Incomplete 2 192.0.2.2");
    }
    // A neighbour that changes: its own record, and the copy.
    router.adjacencies.refresh_neighbour(ETH2, ip("192.0.2.2"));
    assert_eq!(fib.writes().1 - after.1, 2);
    assert_eq!(fib.check(), Vec::<String>::new());
}

#[test]
fn a_route_may_lead_through_the_other_family() {
    let router = with_neighbours();
    let fib = &router.fib;
    add(fib, "2001:db8::/32", &[via("fe80::1", ETH1)]);
    add(fib, "10.0.0.0/8", &[recursive("2001:db8::5")]);
    assert_eq!(router.way("10.1.1.1"), "Incomplete 1 fe80::1");
    let (index, adj) = router.look_up(MAIN, ip("10.1.1.1"));
    assert_eq!(adj.link(), shoal_adj::Link::Ip4);
    assert_ne!(adj.own(), index, "a copy says whose record it is");
    assert_eq!(router.adjacencies.get(adj.own()).next_hop(), Some(ip("fe80::1")));
    add(fib, "11.0.0.0/8", &[via("fe80::9", ETH2)]);
    assert_eq!(router.way("11.1.1.1"), "Incomplete 2 fe80::9");
    fib.remove(MAIN, prefix("2001:db8::/32"), Source::Cli).unwrap();
    assert_eq!(router.way("10.1.1.1"), "Drop - 0.0.0.0");
}

#[test]
fn both_families_have_tables_of_their_own() {
    let router = with_neighbours();
    let fib = &router.fib;
    let four = fib.add_table(Family::Ip4, 10, None).unwrap();
    assert_eq!(fib.index_of(Family::Ip6, 10).unwrap_err().to_string(), "no table 10, nearest 0");
    let six = fib.add_table(Family::Ip6, 10, Some("blue")).unwrap();
    assert_eq!((four, six), (FibIndex(1), FibIndex(1)));
    fib.add(six, prefix("2001:db8::/32"), Source::Cli, &[via("fe80::1", ETH1)]).unwrap();
    assert_eq!(router.way_in(six, "2001:db8::1"), "Incomplete 1 fe80::1");
    assert_eq!(router.way("2001:db8::1"), "None");
    fib.add(MAIN, prefix("2001:db8::/32"), Source::Cli, &[Path::recursive(ip("2001:db8::1"), six)]).unwrap();
    let busy = fib.del_table(Family::Ip6, 10).unwrap_err().to_string();
    assert_eq!(busy, "table 10 is in use: 2001:db8::/32 in table 0");
    fib.del_table(Family::Ip4, 10).unwrap();
    fib.remove(MAIN, prefix("2001:db8::/32"), Source::Cli).unwrap();
    fib.del_table(Family::Ip6, 10).unwrap();
    assert_eq!(fib.check(), Vec::<String>::new());
}

#[test]
fn a_circle_of_routes_keeps_the_ways_that_leave_it() {
    let router = with_neighbours();
    let fib = &router.fib;
    add(fib, "10.0.0.0/8", &[recursive("11.0.0.1"), via("192.0.2.1", ETH1)]);
    add(fib, "11.0.0.0/8", &[recursive("10.0.0.1"), via("192.0.2.2", ETH2)]);
    assert_eq!(router.way("10.1.1.1"), "Incomplete 1 192.0.2.1");
    assert_eq!(router.way("11.1.1.1"), "Incomplete 2 192.0.2.2");
    add(fib, "11.0.0.1/32", &[via("192.0.2.3", ETH2)]);
    assert_eq!(router.shares("10.1.1.1").len(), 2);
}

#[test]
fn a_web_of_routes_is_resolved_without_following_every_way() {
    let router = with_neighbours();
    // Each of 60 routes leads twice through the next one: 2^60 ways to follow, and one next hop.
    for n in (0..60u8).rev() {
        let (a, b) = (format!("10.{}.0.1", n + 1), format!("10.{}.0.2", n + 1));
        add(&router.fib, &format!("10.{n}.0.0/16"), &[recursive(&a), recursive(&b)]);
    }
    add(&router.fib, "10.60.0.0/16", &[via("192.0.2.1", ETH1)]);
    assert_eq!(router.way("10.0.0.1"), "Incomplete 1 192.0.2.1");
    assert_eq!(router.fib.check(), Vec::<String>::new());
}

#[test]
fn refused_paths_leave_nothing_behind() {
    let router = with_neighbours();
    let (fib, before) = (&router.fib, router.locks());
    let bad =
        |paths: &[Path]| fib.add(MAIN, prefix("10.0.0.0/8"), Source::Cli, paths).unwrap_err().to_string();
    let many: Vec<Path> = (0..=MOST_BUCKETS as u32)
        .map(|n| Path::next_hop(Ipv4Addr::from_bits(0xc000_0201 + n), ETH1))
        .collect();
    assert_eq!(bad(&many), "1025 paths are too many for one route, nearest 1024");
    assert_eq!(
        bad(&[recursive("fe80::1")]),
        "fe80::1 is the address of a host on one link: the interface is missing"
    );
    assert_eq!(bad(&[Path::recursive(ip("10.0.0.1"), FibIndex(4))]), "no table with fib_index 4");
    let six =
        fib.add(MAIN, prefix("2001:db8::/32"), Source::Cli, &[Via::Broadcast { interface: ETH1 }.into()]);
    assert_eq!(six.unwrap_err().to_string(), "IPv6 has no broadcast");
    let mixed = fib.add_many(
        MAIN,
        [prefix("10.0.0.0/8"), prefix("2001:db8::/32")],
        Source::Cli,
        &[via("192.0.2.1", ETH1)],
    );
    assert_eq!(mixed, Err(FibError::Mixed(prefix("2001:db8::/32"))));
    assert_eq!((fib.entries(Family::Ip4, MAIN).unwrap().len(), router.locks()), (5, before.clone()));
    assert_eq!(fib.add(MAIN, prefix("10.0.0.0/8"), Source::Cli, &many[1..]), Ok(()));
    assert_eq!(router.shares("10.1.1.1").len(), 1024);
    fib.remove(MAIN, prefix("10.0.0.0/8"), Source::Cli).unwrap();
    assert_eq!((router.locks(), fib.check()), (before, Vec::new()));
}

#[test]
fn the_last_addresses_of_both_families_can_be_counted_to() {
    let last = |text: &str, n| consecutive(prefix(text), n).map(|all| all.last().map(|p| p.to_string()));
    assert_eq!(last("255.255.255.0/24", 1), Ok(Some("255.255.255.0/24".into())));
    assert_eq!(last("0.0.0.0/0", 1), Ok(Some("0.0.0.0/0".into())));
    assert_eq!(last("::/0", 1), Ok(Some("::/0".into())));
    assert_eq!(last("2001:db8::/64", 3), Ok(Some("2001:db8:0:2::/64".into())));
    let most = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128";
    let beyond = last(most, 2).unwrap_err().to_string();
    assert_eq!(beyond, format!("2 prefixes from {most} on end beyond the last address, nearest 1"));
}
