//! Routes: sources, paths, recursion, tables, interfaces that go.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::net::Ipv4Addr;

use router::{Router, ip, prefix, router};
use shoal_adj::Adj;
use shoal_fib::{Family, Fib, FibError, FibIndex, Path, PathState, Source, Via, consecutive};
use shoal_interface::SwIfIndex;

const ETH1: SwIfIndex = SwIfIndex(1);
const ETH2: SwIfIndex = SwIfIndex(2);
const MAIN: FibIndex = FibIndex::DEFAULT;

fn with_neighbours() -> Router {
    let router = router(2);
    // What a neighbour protocol does: say who the neighbour is.
    router.adjacencies.set_describe(
        shoal_adj::Family::Ip4,
        std::rc::Rc::new(|interface, _, _| Adj::on(shoal_adj::AdjKind::Incomplete, interface, 1500)),
    );
    router
}

fn via(next_hop: &str, interface: SwIfIndex) -> Path {
    Path::next_hop(ip(next_hop), interface)
}

fn recursive(next_hop: &str) -> Path {
    Path::recursive(ip(next_hop), MAIN)
}

fn add(fib: &Fib, to: &str, source: Source, path: Path) {
    fib.add(MAIN, prefix(to), source, &[path]).unwrap();
}

#[test]
fn a_new_table_has_the_special_entries_and_no_route() {
    let router = router(0);
    let prefixes: Vec<String> =
        router.fib.entries(Family::Ip4, MAIN).unwrap().iter().map(|e| e.prefix.to_string()).collect();
    assert_eq!(prefixes, ["0.0.0.0/0", "0.0.0.0/32", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"]);
    assert_eq!(router.way("192.0.2.1"), "None");
    assert_eq!(router.way("0.0.0.0"), "Drop - 0.0.0.0");
    assert_eq!(router.way("239.1.2.3"), "Drop - 0.0.0.0");
    assert_eq!(router.way("255.255.255.255"), "Drop - 0.0.0.0");
}

#[test]
fn the_best_source_decides_and_the_next_one_follows_it() {
    let router = with_neighbours();
    let fib = &router.fib;
    add(fib, "10.0.0.0/8", Source::Cli, via("192.0.2.1", ETH1));
    add(fib, "10.0.0.0/8", Source::Adjacency, via("192.0.2.2", ETH1));
    add(fib, "10.0.0.0/8", Source::Interface, Via::Unreachable.into());
    assert_eq!(router.way("10.1.1.1"), "Unreachable - 0.0.0.0");
    fib.remove(MAIN, prefix("10.0.0.0/8"), Source::Interface).unwrap();
    assert_eq!(router.way("10.1.1.1"), "Incomplete 1 192.0.2.1");
    fib.remove(MAIN, prefix("10.0.0.0/8"), Source::Cli).unwrap();
    assert_eq!(router.way("10.1.1.1"), "Incomplete 1 192.0.2.2");
    fib.remove(MAIN, prefix("10.0.0.0/8"), Source::Adjacency).unwrap();
    assert_eq!(router.way("10.1.1.1"), "None");
}

#[test]
fn no_route_replaces_a_special_entry_and_any_route_replaces_the_default() {
    let router = with_neighbours();
    add(&router.fib, "240.0.0.0/4", Source::Cli, via("192.0.2.1", ETH1));
    add(&router.fib, "0.0.0.0/0", Source::Cli, via("192.0.2.1", ETH1));
    assert_eq!(router.way("240.1.1.1"), "Drop - 0.0.0.0");
    assert_eq!(router.way("8.8.8.8"), "Incomplete 1 192.0.2.1");
    router.fib.remove(MAIN, prefix("0.0.0.0/0"), Source::Cli).unwrap();
    assert_eq!(router.way("8.8.8.8"), "None");
}

#[test]
fn host_bits_are_masked() {
    let router = with_neighbours();
    add(&router.fib, "10.1.2.3/8", Source::Cli, via("192.0.2.1", ETH1));
    assert_eq!(router.fib.entry(MAIN, prefix("10.0.0.0/8")).unwrap().prefix, prefix("10.0.0.0/8"));
    router.fib.remove(MAIN, prefix("10.9.9.9/8"), Source::Cli).unwrap();
}

#[test]
fn a_recursive_route_follows_its_next_hop_through_other_routes() {
    let router = with_neighbours();
    let fib = &router.fib;
    add(fib, "10.0.0.0/8", Source::Cli, recursive("172.16.0.1"));
    assert_eq!(router.way("10.0.0.1"), "Drop - 0.0.0.0");
    assert_eq!(fib.longest(MAIN, ip("10.0.0.1")).unwrap().unwrap().lists[0].state, PathState::Unresolved);
    add(fib, "172.16.0.0/16", Source::Cli, recursive("192.0.2.9"));
    assert_eq!(router.way("10.0.0.1"), "Drop - 0.0.0.0");
    add(
        fib,
        "192.0.2.0/24",
        Source::Interface,
        Via::Attached { interface: ETH2, source: ip("192.0.2.1") }.into(),
    );
    assert_eq!(router.way("10.0.0.1"), "Incomplete 2 192.0.2.9");
    // A more specific cover takes over, and gives way again.
    add(fib, "172.16.0.1/32", Source::Api, via("198.51.100.1", ETH1));
    assert_eq!(router.way("10.0.0.1"), "Incomplete 1 198.51.100.1");
    fib.remove(MAIN, prefix("172.16.0.1/32"), Source::Api).unwrap();
    assert_eq!(router.way("10.0.0.1"), "Incomplete 2 192.0.2.9");
    fib.remove(MAIN, prefix("192.0.2.0/24"), Source::Interface).unwrap();
    assert_eq!(router.way("10.0.0.1"), "Drop - 0.0.0.0");
}

#[test]
fn what_is_on_a_link_for_one_host_is_that_host() {
    // Behind an unnumbered interface. Many at a time, added to, and taken away by the words they were given with.
    let router = with_neighbours();
    let (fib, before) = (&router.fib, router.locks());
    let attached: Path = Via::Attached { interface: ETH1, source: ip("0.0.0.0") }.into();
    let hosts = ["10.0.0.5/32", "10.0.0.6/32"].map(prefix);
    fib.add_paths(MAIN, hosts, Source::Cli, &[attached]).unwrap();
    assert_eq!(router.way("10.0.0.5"), "Incomplete 1 10.0.0.5");
    assert_eq!(router.way("10.0.0.6"), "Incomplete 1 10.0.0.6");
    fib.add_paths(MAIN, hosts, Source::Cli, &[via("198.51.100.1", ETH2)]).unwrap();
    fib.remove_paths(MAIN, hosts, Source::Cli, &[attached]).unwrap();
    assert_eq!(router.way("10.0.0.5"), "Incomplete 2 198.51.100.1");
    assert!(fib.remove_paths(MAIN, hosts, Source::Cli, &[attached]).is_err());
    fib.remove_many(MAIN, hosts, Source::Cli).unwrap();
    // IPv6 is no different; a network of many stays one, and groups are no host's address.
    let attached6: Path = Via::Attached { interface: ETH1, source: ip("::") }.into();
    fib.add_paths(MAIN, [prefix("2001:db8::50/128")], Source::Api, &[attached6]).unwrap();
    assert_eq!(router.way("2001:db8::50"), "Incomplete 1 2001:db8::50");
    fib.add_paths(MAIN, [prefix("10.1.0.0/31"), prefix("224.0.0.9/32")], Source::Cli, &[attached]).unwrap();
    assert_eq!(router.way("10.1.0.1"), "Glean 1 0.0.0.0");
    assert_eq!(router.way("224.0.0.9"), "Glean 1 0.0.0.0");
    fib.remove_many(MAIN, ["10.1.0.0/31", "224.0.0.9/32"].map(prefix), Source::Cli).unwrap();
    fib.remove_many(MAIN, [prefix("2001:db8::50/128")], Source::Api).unwrap();
    assert_eq!(router.locks(), before);
}

#[test]
fn a_loop_of_routes_drops_until_it_is_broken() {
    let router = with_neighbours();
    let fib = &router.fib;
    add(fib, "10.0.0.0/8", Source::Cli, recursive("11.0.0.1"));
    add(fib, "11.0.0.0/8", Source::Cli, recursive("12.0.0.1"));
    add(fib, "12.0.0.0/8", Source::Cli, recursive("10.0.0.1"));
    for addr in ["10.0.0.1", "11.0.0.1", "12.0.0.1"] {
        assert_eq!(router.way(addr), "Drop - 0.0.0.0");
        assert_eq!(fib.longest(MAIN, ip(addr)).unwrap().unwrap().lists[0].state, PathState::Loop);
    }
    add(fib, "12.0.0.1/32", Source::Cli, via("192.0.2.1", ETH1));
    for addr in ["10.0.0.1", "11.0.0.1", "12.0.0.2"] {
        assert_eq!(router.way(addr), "Incomplete 1 192.0.2.1");
    }
    add(fib, "13.0.0.0/8", Source::Cli, recursive("13.0.0.1"));
    assert_eq!(router.way("13.1.1.1"), "Drop - 0.0.0.0");
}

#[test]
fn a_chain_of_a_thousand_routes_resolves() {
    let router = with_neighbours();
    for n in (0..1000u32).rev() {
        let to = Ipv4Addr::from_bits(0x0a00_0000 + n * 256);
        let next = Ipv4Addr::from_bits(0x0a00_0001 + (n + 1) * 256);
        add(&router.fib, &format!("{to}/24"), Source::Cli, recursive(&next.to_string()));
    }
    assert_eq!(router.way("10.0.0.1"), "Drop - 0.0.0.0");
    add(&router.fib, "10.3.232.0/24", Source::Cli, via("192.0.2.1", ETH1));
    assert_eq!(router.way("10.0.0.1"), "Incomplete 1 192.0.2.1");
}

#[test]
fn of_several_paths_the_first_usable_of_the_lowest_preference_forwards() {
    let router = with_neighbours();
    let paths = [via("192.0.2.1", ETH1).preference(1), recursive("172.16.0.1")];
    router.fib.add(MAIN, prefix("10.0.0.0/8"), Source::Cli, &paths).unwrap();
    assert_eq!(router.way("10.0.0.1"), "Incomplete 1 192.0.2.1");
    add(&router.fib, "172.16.0.0/16", Source::Cli, via("192.0.2.7", ETH2));
    assert_eq!(router.way("10.0.0.1"), "Incomplete 2 192.0.2.7");
    assert_eq!(router.fib.entry(MAIN, prefix("10.0.0.0/8")).unwrap().lists[0].paths.len(), 2);
}

#[test]
fn paths_are_added_to_and_taken_from_what_a_source_gave() {
    let router = with_neighbours();
    let (fib, to) = (&router.fib, prefix("10.0.0.0/8"));
    fib.add_paths(MAIN, [to], Source::Cli, &[via("192.0.2.1", ETH1)]).unwrap();
    fib.add_paths(MAIN, [to], Source::Cli, &[via("192.0.2.2", ETH1)]).unwrap();
    fib.add_paths(MAIN, [to], Source::Cli, &[via("192.0.2.2", ETH1).weight(3)]).unwrap();
    let weights = |fib: &Fib| -> Vec<u8> {
        fib.entry(MAIN, to).unwrap().lists[0].paths.iter().map(|p| p.weight).collect()
    };
    assert_eq!(weights(fib), [1, 3]);
    let missing = fib.remove_paths(MAIN, [to], Source::Cli, &[via("192.0.2.9", ETH1)]).unwrap_err();
    assert_eq!(missing.to_string(), "10.0.0.0/8 in table 0 has no such path from CLI, it has 2");
    fib.remove_paths(MAIN, [to], Source::Cli, &[via("192.0.2.1", ETH1)]).unwrap();
    assert_eq!(router.way("10.0.0.1"), "Incomplete 1 192.0.2.2");
    fib.remove_paths(MAIN, [to], Source::Cli, &[via("192.0.2.2", ETH1)]).unwrap();
    assert!(matches!(fib.entry(MAIN, to), Err(FibError::NoEntry { .. })));
}

#[test]
fn a_refused_bulk_leaves_nothing_behind() {
    let router = with_neighbours();
    let (fib, before) = (&router.fib, router.locks());
    let many = || consecutive(prefix("10.0.0.0/24"), 1000).unwrap();
    for (paths, want) in [
        (vec![], FibError::NoPaths),
        (vec![via("192.0.2.1", ETH1), via("224.0.0.1", ETH1)], FibError::NextHop(ip("224.0.0.1"))),
        (vec![via("192.0.2.1", ETH1).weight(0)], FibError::Weight),
        (vec![Via::Lookup(FibIndex(7)).into()], FibError::NoIndex(FibIndex(7))),
    ] {
        assert_eq!(fib.add_many(MAIN, many(), Source::Cli, &paths).unwrap_err(), want);
    }
    let gone = fib.add_many(MAIN, many(), Source::Cli, &[via("192.0.2.1", SwIfIndex(9))]).unwrap_err();
    assert_eq!(gone.to_string(), "no interface with sw_if_index 9");
    assert_eq!((fib.entries(Family::Ip4, MAIN).unwrap().len(), router.locks()), (5, before));
}

#[test]
fn errors_name_what_is_wrong_and_the_nearest_right_value() {
    let router = with_neighbours();
    let fib = &router.fib;
    fib.add_table(Family::Ip4, 10, Some("blue")).unwrap();
    add(fib, "10.0.0.0/8", Source::Cli, via("192.0.2.1", ETH1));
    add(fib, "11.0.0.0/8", Source::Api, via("192.0.2.1", ETH1));
    let text = |e: FibError| e.to_string();
    assert_eq!(text(fib.index_of(Family::Ip4, 11).unwrap_err()), "no table 11, nearest 10");
    assert_eq!(text(fib.add_table(Family::Ip4, 10, None).unwrap_err()), "table 10 exists already");
    assert_eq!(
        text(fib.add_table(Family::Ip4, 11, Some("blue")).unwrap_err()),
        "table 10 is called `blue' already"
    );
    assert_eq!(text(fib.del_table(Family::Ip4, 0).unwrap_err()), "table 0 cannot be deleted");
    let remove = |to: &str| text(fib.remove(MAIN, prefix(to), Source::Cli).unwrap_err());
    assert_eq!(remove("10.1.0.0/16"), "10.1.0.0/16 is not in table 0, nearest 10.0.0.0/8");
    assert_eq!(remove("11.0.0.0/8"), "11.0.0.0/8 in table 0 is from API, not from CLI");
    let beyond = consecutive(prefix("255.255.255.0/24"), 2).map(Iterator::count).unwrap_err();
    assert_eq!(text(beyond), "2 prefixes from 255.255.255.0/24 on end beyond 255.255.255.255, nearest 1");
}

#[test]
fn tables_are_apart_and_go_with_their_routes() {
    let router = with_neighbours();
    let (fib, before) = (&router.fib, router.locks());
    let red = fib.add_table(Family::Ip4, 10, None).unwrap();
    fib.add(red, prefix("10.0.0.0/8"), Source::Cli, &[via("192.0.2.1", ETH1)]).unwrap();
    fib.add(red, prefix("11.0.0.0/8"), Source::Cli, &[Path::recursive(ip("10.1.1.1"), red)]).unwrap();
    assert_eq!(router.way_in(red, "11.1.1.1"), "Incomplete 1 192.0.2.1");
    assert_eq!(router.way("11.1.1.1"), "None");
    assert_eq!(router.way_in(FibIndex(77), "11.1.1.1"), "None");
    add(fib, "12.0.0.0/8", Source::Cli, Path::recursive(ip("11.1.1.1"), red));
    add(fib, "13.0.0.0/8", Source::Cli, Via::Lookup(red).into());
    assert_eq!(router.way("12.1.1.1"), "Incomplete 1 192.0.2.1");
    assert_eq!(router.way("13.1.1.1"), "Lookup - 0.0.0.1");
    let busy = fib.del_table(Family::Ip4, 10).unwrap_err().to_string();
    assert!(busy.starts_with("table 10 is in use: 1"), "{busy}");
    fib.remove_many(MAIN, [prefix("12.0.0.0/8"), prefix("13.0.0.0/8")], Source::Cli).unwrap();
    fib.lock(Family::Ip4, red, Source::Interface).unwrap();
    assert_eq!(fib.del_table(Family::Ip4, 10).unwrap_err().to_string(), "table 10 is in use: interface:1");
    fib.unlock(Family::Ip4, red, Source::Interface);
    fib.del_table(Family::Ip4, 10).unwrap();
    assert_eq!((fib.ids(Family::Ip4), router.locks()), (vec![0], before));
    assert_eq!(router.way_in(red, "11.1.1.1"), "None");
    assert_eq!(fib.add_table(Family::Ip4, 20, None).unwrap(), red);
}

#[test]
fn routes_through_a_deleted_interface_are_withdrawn() {
    let router = with_neighbours();
    let (fib, before) = (&router.fib, router.locks());
    add(
        fib,
        "192.0.2.0/24",
        Source::Interface,
        Via::Attached { interface: ETH1, source: ip("192.0.2.1") }.into(),
    );
    add(fib, "10.0.0.0/8", Source::Cli, recursive("192.0.2.9"));
    add(fib, "11.0.0.0/8", Source::Cli, via("192.0.2.2", ETH1));
    let both = [via("192.0.2.2", ETH1), via("198.51.100.2", ETH2)];
    fib.add(MAIN, prefix("12.0.0.0/8"), Source::Cli, &both).unwrap();
    router.interfaces.delete(ETH1).unwrap();
    assert_eq!(router.way("10.1.1.1"), "Drop - 0.0.0.0");
    assert_eq!(router.way("11.1.1.1"), "None");
    assert_eq!(router.way("12.1.1.1"), "Incomplete 2 198.51.100.2");
    assert!(fib.entry(MAIN, prefix("11.0.0.0/8")).is_err());
    fib.remove_many(MAIN, [prefix("10.0.0.0/8"), prefix("12.0.0.0/8")], Source::Cli).unwrap();
    assert_eq!(router.locks(), before);
}

#[test]
fn memory_is_accounted_by_table() {
    let router = with_neighbours();
    let before = router.fib.table(Family::Ip4, MAIN).unwrap();
    let many = consecutive(prefix("10.0.0.0/24"), 20_000).unwrap();
    assert_eq!(router.fib.add_many(MAIN, many.clone(), Source::Cli, &[via("192.0.2.1", ETH1)]), Ok(20_000));
    let after = router.fib.table(Family::Ip4, MAIN).unwrap();
    assert_eq!(after.lengths[24], 20_000);
    let each = (after.trie_bytes + after.entry_bytes - before.trie_bytes - before.entry_bytes) / 20_000;
    assert!((10..120).contains(&each), "{each} bytes for each route");
    assert_eq!(router.fib.remove_many(MAIN, many, Source::Cli), Ok(20_000));
    assert_eq!(router.fib.table(Family::Ip4, MAIN).unwrap().trie_bytes, before.trie_bytes);
}
