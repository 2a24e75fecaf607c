//! Random changes against a model that keeps nothing but a list and searches it from end to end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod router;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use proptest::prelude::*;
use router::{Router, router};
use shoal_adj::{Adj, AdjKind};
use shoal_fib::{FibIndex, Path, Source, Via};
use shoal_infra::Zeroable;
use shoal_interface::SwIfIndex;
use shoal_wire::Ip4Prefix;

const SOURCES: [Source; 4] = [Source::Interface, Source::Api, Source::Cli, Source::Adjacency];

#[derive(Clone, Debug)]
enum Change {
    Set { table: u32, prefix: Ip4Prefix, source: usize, paths: Vec<Path> },
    Withdraw { table: u32, pick: usize },
    DeleteInterface(u32),
}

/// Few addresses, so that prefixes cover each other and each other's next hops, at all the trie's levels.
fn address() -> impl Strategy<Value = Ipv4Addr> {
    (prop::sample::select(vec![10u8, 11, 77]), 0..2u8, 0..2u8, 0..4u8)
        .prop_map(|(a, b, c, d)| Ipv4Addr::new(a, b, c * 128, d * 64 + 1))
}

fn prefix() -> impl Strategy<Value = Ip4Prefix> {
    (address(), prop_oneof![Just(0u8), 1..=32u8, Just(8u8), Just(16), Just(24), Just(32)])
        .prop_map(|(addr, len)| Ip4Prefix::new(addr, len).unwrap().normalized())
}

fn path() -> impl Strategy<Value = Path> {
    let table = || (0..2u32).prop_map(FibIndex);
    let interface = || (1..4u32).prop_map(SwIfIndex);
    let via = prop_oneof![
        4 => (address(), table()).prop_map(|(next_hop, fib)| Via::Recursive { next_hop, fib }),
        3 => (address(), interface()).prop_map(|(next_hop, interface)| Via::NextHop { interface, next_hop }),
        2 => (address(), interface()).prop_map(|(source, interface)| Via::Attached { interface, source }),
        1 => Just(Via::Drop),
        1 => Just(Via::Unreachable),
        1 => table().prop_map(Via::Lookup),
        1 => Just(Via::Local { interface: None, address: Ipv4Addr::UNSPECIFIED }),
    ];
    (via, 0..2u8).prop_map(|(via, preference)| Path::from(via).preference(preference))
}

fn change() -> impl Strategy<Value = Change> {
    let paths = prop::collection::vec(path(), 1..4);
    prop_oneof![
        6 => (0..2u32, prefix(), 0..SOURCES.len(), paths)
            .prop_map(|(table, prefix, source, paths)| Change::Set { table, prefix, source, paths }),
        4 => (0..2u32, any::<usize>()).prop_map(|(table, pick)| Change::Withdraw { table, pick }),
        1 => (1..4u32).prop_map(Change::DeleteInterface),
    ]
}

type Key = (u32, Ip4Prefix, Source);

/// What was contributed, and nothing else.
#[derive(Default)]
struct Model(BTreeMap<Key, Vec<Path>>);

impl Model {
    /// The longest prefix, then the best source, by looking at everything.
    fn longest(&self, table: u32, addr: Ipv4Addr) -> Option<&Vec<Path>> {
        let covering = self.0.iter().filter(|((t, p, _), _)| *t == table && p.contains(addr));
        covering
            .max_by_key(|((_, p, source), _)| (p.len(), std::cmp::Reverse(*source)))
            .map(|(_, paths)| paths)
    }

    /// The first path that ends, without entering the same paths twice.
    fn follow(
        &self,
        paths: &[Path],
        led_by: Option<Ipv4Addr>,
        seen: &mut BTreeSet<Vec<Path>>,
    ) -> Option<Adj> {
        if !seen.insert(paths.to_vec()) {
            return None;
        }
        paths.iter().find_map(|path| match (path.via, led_by) {
            (Via::Recursive { next_hop, fib }, _) => {
                self.follow(self.longest(fib.0, next_hop)?, Some(next_hop), seen)
            }
            (Via::NextHop { interface, next_hop }, _) | (Via::Attached { interface, .. }, Some(next_hop)) => {
                Some(neighbour(interface, next_hop))
            }
            (_, Some(_)) => None,
            (Via::Attached { interface, source }, None) => {
                Some(Adj::on(AdjKind::Glean, interface, 1500).with_address(source.into()))
            }
            (Via::Drop, None) => Some(Adj::special(AdjKind::Drop)),
            (Via::Unreachable, None) => Some(Adj::special(AdjKind::Unreachable)),
            (Via::Lookup(fib), None) => Some(Adj::lookup(fib.0)),
            (Via::Local { .. }, None) => Some(Adj::special(AdjKind::Local)),
            other => panic!("not made by this test: {other:?}"),
        })
    }

    fn adj(&self, table: u32, addr: Ipv4Addr) -> Adj {
        match self.longest(table, addr) {
            None => Adj::zeroed(),
            Some(paths) => {
                self.follow(paths, None, &mut BTreeSet::new()).unwrap_or(Adj::special(AdjKind::Drop))
            }
        }
    }
}

fn neighbour(interface: SwIfIndex, next_hop: Ipv4Addr) -> Adj {
    Adj::on(AdjKind::Incomplete, interface, 1500).with_address(next_hop.into())
}

/// As the table keeps them: sorted, one of each kind.
fn kept(paths: &[Path]) -> Vec<Path> {
    let mut all: Vec<Path> = Vec::new();
    for path in paths {
        all.retain(|p| p.via != path.via);
        all.push(*path);
    }
    all.sort();
    all
}

fn apply(router: &Router, model: &mut Model, change: &Change) {
    match change {
        Change::Set { table, prefix, source, paths } => {
            let there = |p: &Path| p.via.interface().is_none_or(|i| router.interfaces.data(i).is_ok());
            let added = router.fib.add(FibIndex(*table), *prefix, SOURCES[*source], paths);
            assert_eq!(added.is_ok(), paths.iter().all(there), "{added:?}");
            if added.is_ok() {
                model.0.insert((*table, *prefix, SOURCES[*source]), kept(paths));
            }
        }
        Change::Withdraw { table, pick } => {
            let mine: Vec<Key> = model.0.keys().filter(|(t, ..)| t == table).copied().collect();
            if let Some(key) = mine.get(pick % mine.len().max(1)) {
                router.fib.remove(FibIndex(*table), key.1, key.2).unwrap();
                model.0.remove(key);
            }
        }
        Change::DeleteInterface(index) => {
            if router.interfaces.delete(SwIfIndex(*index)).is_ok() {
                for paths in model.0.values_mut() {
                    paths.retain(|p| p.via.interface() != Some(SwIfIndex(*index)));
                }
                model.0.retain(|_, paths| !paths.is_empty());
            }
        }
    }
}

fn addresses() -> Vec<Ipv4Addr> {
    let mut all: Vec<Ipv4Addr> = Vec::new();
    for a in [10u8, 11, 77, 100] {
        for (b, c, d) in (0..2u8).flat_map(|b| (0..2u8).flat_map(move |c| (0..4u8).map(move |d| (b, c, d)))) {
            all.extend([1u8, 2].map(|low| Ipv4Addr::new(a, b, c * 128, d * 64 + low)));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn packets_go_where_a_linear_search_says(changes in prop::collection::vec(change(), 1..40)) {
        let router = router(3);
        router.adjacencies.set_describe(
            shoal_adj::Family::Ip4,
            std::rc::Rc::new(|interface, _, _| Adj::on(AdjKind::Incomplete, interface, 1500)),
        );
        prop_assert_eq!(router.fib.add_table(1, None).unwrap(), FibIndex(1));
        let before = router.locks();
        let mut model = Model::default();
        for change in &changes {
            apply(&router, &mut model, change);
            for table in 0..2 {
                for addr in addresses() {
                    let (index, adj) = router.look_up(FibIndex(table), addr);
                    prop_assert!(adj.leads_where(&model.adj(table, addr)), "{} in {} after {:?}", addr, table, change);
                    prop_assert_eq!(index, router.fib.lookup(FibIndex(table), addr));
                }
            }
        }
        for (table, prefix, source) in model.0.keys() {
            router.fib.remove(FibIndex(*table), *prefix, *source).unwrap();
        }
        prop_assert_eq!(router.locks(), before, "adjacencies stay locked");
    }
}
