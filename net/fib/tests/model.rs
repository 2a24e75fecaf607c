//! Random changes against a model that keeps nothing but a list and searches it from end to end, for both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use router::{Router, router};
use shoal_adj::{Adj, AdjKind, Link};
use shoal_fib::{Family, FibIndex, Path, Reach, Source, Via};
use shoal_interface::SwIfIndex;
use shoal_wire::IpPrefix;

const SOURCES: [Source; 4] = [Source::Interface, Source::Api, Source::Cli, Source::Adjacency];

#[derive(Clone, Debug)]
enum Change {
    Set { table: u32, prefix: IpPrefix, source: usize, paths: Vec<Path> },
    Withdraw { table: u32, pick: usize },
    DeleteInterface(u32),
    SetInterface(u32, bool),
    SetNextHop(u32, IpAddr, Reach),
}

/// Few addresses, so that prefixes cover each other and each other's next hops, at all the tries' levels.
fn address_of(six: bool, (a, b, c, d): (u8, u8, u8, u8)) -> IpAddr {
    if six {
        let word = |x: u8, shift: u32| u128::from(x) << shift;
        let bits = word(a, 120) | word(b, 95) | word(c, 63) | word(d, 6) | 1;
        Ipv6Addr::from_bits(bits).into()
    } else {
        Ipv4Addr::new(a, b, c * 128, d * 64 + 1).into()
    }
}

fn address() -> impl Strategy<Value = IpAddr> {
    (any::<bool>(), (prop::sample::select(vec![10u8, 11, 77]), 0..2u8, 0..2u8, 0..4u8))
        .prop_map(|(six, parts)| address_of(six, parts))
}

fn prefix() -> impl Strategy<Value = IpPrefix> {
    let eighths = prop_oneof![Just(0u16), 1..=32u16, Just(8), Just(16), Just(24), Just(32)];
    (address(), eighths, 0..4u16).prop_map(|(addr, len, more)| {
        let len = if addr.is_ipv4() { len } else { (len * 4 + more).min(128) };
        IpPrefix::new(addr, len as u8).unwrap().normalized()
    })
}

fn path() -> impl Strategy<Value = Path> {
    let table = || (0..2u32).prop_map(FibIndex);
    let interface = || (1..4u32).prop_map(SwIfIndex);
    let via = prop_oneof![
        6 => (address(), table()).prop_map(|(next_hop, fib)| Via::Recursive { next_hop, fib }),
        4 => (address(), interface()).prop_map(|(next_hop, interface)| Via::NextHop { interface, next_hop }),
        2 => (address(), interface()).prop_map(|(source, interface)| Via::Attached { interface, source }),
        1 => interface().prop_map(|interface| Via::InterfaceRx { interface }),
        1 => Just(Via::Drop),
        1 => Just(Via::Unreachable),
        1 => table().prop_map(Via::Lookup),
        1 => Just(Via::Local { interface: None, address: Ipv4Addr::UNSPECIFIED.into() }),
    ];
    (via, 0..2u8, 1..4u8, any::<bool>()).prop_map(|(via, preference, weight, resilient)| {
        let path = Path::from(via).preference(preference).weight(weight);
        if resilient { path.resilient() } else { path }
    })
}

fn change() -> impl Strategy<Value = Change> {
    let paths = prop::collection::vec(path(), 1..4);
    let reach = prop_oneof![Just(Reach::Up), Just(Reach::Down)];
    prop_oneof![
        12 => (0..2u32, prefix(), 0..SOURCES.len(), paths)
            .prop_map(|(table, prefix, source, paths)| Change::Set { table, prefix, source, paths }),
        6 => (0..2u32, any::<usize>()).prop_map(|(table, pick)| Change::Withdraw { table, pick }),
        1 => (1..4u32).prop_map(Change::DeleteInterface),
        3 => (1..4u32, any::<bool>()).prop_map(|(i, up)| Change::SetInterface(i, up)),
        3 => (1..4u32, address(), reach).prop_map(|(i, addr, reach)| Change::SetNextHop(i, addr, reach)),
    ]
}

type Key = (u32, IpPrefix, Source);

/// Everything a list is: whose packets it carries, and its paths.
type ListOf = (Family, Vec<Path>);

/// What was contributed, what is down, and nothing else.
#[derive(Default)]
struct Model {
    routes: BTreeMap<Key, Vec<Path>>,
    /// Hosts that table 1 knows from table 0, which all interfaces belong to.
    copies: BTreeMap<Key, Vec<Path>>,
    down: BTreeSet<u32>,
    silent: BTreeSet<(u32, IpAddr)>,
}

/// Where a next hop is: behind a neighbour, or (`None`) on the link.
type Place = (SwIfIndex, Option<IpAddr>);

/// Things and their shares of 1.
type Shares<T> = Vec<(T, f64)>;

impl Model {
    /// The longest prefix, then the best source, by looking at everything.
    fn longest(&self, table: u32, addr: IpAddr) -> Option<ListOf> {
        let covering =
            self.routes.iter().chain(&self.copies).filter(|((t, p, _), _)| *t == table && p.contains(addr));
        covering
            .max_by_key(|((_, p, source), _)| (p.len(), std::cmp::Reverse(*source)))
            .map(|(_, paths)| (Family::of(addr), paths.clone()))
    }

    /// The only path of a prefix's best source.
    fn only(&self, table: u32, prefix: IpPrefix) -> Option<(Source, Path)> {
        let mut best = self.routes.iter().filter(|((t, p, _), _)| (*t, *p) == (table, prefix));
        let ((_, _, source), paths) = best.next()?;
        if let [only] = paths[..] { Some((*source, only)) } else { None }
    }

    /// What is copied: by each of table 1's routes to a link, the link's neighbours inside of it.
    fn copy(&mut self) {
        self.copies.clear();
        let prefixes: BTreeSet<(u32, IpPrefix)> = self.routes.keys().map(|(t, p, _)| (*t, *p)).collect();
        for (_, cover) in prefixes.iter().filter(|(t, p)| *t == 1 && p.len() < p.max_len()) {
            let Some((_, Path { via: Via::Attached { interface, .. }, .. })) = self.only(1, *cover) else {
                continue;
            };
            for (_, host) in
                prefixes.iter().filter(|(t, p)| *t == 0 && p.len() == p.max_len() && cover.covers(p))
            {
                if let Some((Source::Adjacency, path)) = self.only(0, *host)
                    && matches!(path.via, Via::NextHop { interface: i, .. } if i == interface)
                {
                    self.copies.insert((1, *host, Source::AttachedExport), vec![path]);
                }
            }
        }
    }

    fn is_up(&self, interface: SwIfIndex, next_hop: Option<IpAddr>) -> bool {
        !self.down.contains(&interface.0) && next_hop.is_none_or(|n| !self.silent.contains(&(interface.0, n)))
    }

    fn covers(&self, (_, paths): &ListOf) -> Vec<ListOf> {
        let recursive = paths.iter().filter_map(|p| match p.via {
            Via::Recursive { next_hop, fib } => self.longest(fib.0, next_hop),
            _ => None,
        });
        recursive.collect()
    }

    fn leads_to(&self, from: &ListOf, to: &ListOf) -> bool {
        let (mut open, mut seen) = (vec![from.clone()], BTreeSet::new());
        while let Some(list) = open.pop() {
            if list == *to {
                return true;
            }
            if seen.insert(list.clone()) {
                open.extend(self.covers(&list));
            }
        }
        false
    }

    /// The shares of what paths lead to; of preference, the lowest that leads somewhere. A path along a circle leads
    /// nowhere.
    fn group<T: PartialEq>(
        &self,
        list: &ListOf,
        live: bool,
        through: &dyn Fn(Place) -> T,
        end: &dyn Fn(&Path) -> Option<T>,
    ) -> Shares<T> {
        for preference in 0..2 {
            let mut all: Shares<T> = Vec::new();
            for path in list.1.iter().filter(|p| p.preference == preference) {
                let of_path: Shares<T> = match path.via {
                    Via::Recursive { next_hop, fib } => match self.longest(fib.0, next_hop) {
                        Some(cover) if !self.leads_to(&cover, list) => self
                            .places(&cover, live)
                            .into_iter()
                            .map(|((i, behind), share)| ((i, Some(behind.unwrap_or(next_hop))), share))
                            .filter(|((i, behind), _)| !live || self.is_up(*i, *behind))
                            .map(|(place, share)| (through(place), share))
                            .collect(),
                        _ => Vec::new(),
                    },
                    _ => end(path).into_iter().map(|t| (t, 1.0)).collect(),
                };
                let sum: f64 = of_path.iter().map(|(_, share)| share).sum();
                for (what, share) in of_path {
                    let share = share / sum * f64::from(path.weight);
                    match all.iter_mut().find(|(w, _)| *w == what) {
                        Some((_, s)) => *s += share,
                        None => all.push((what, share)),
                    }
                }
            }
            let sum: f64 = all.iter().map(|(_, share)| share).sum();
            if !all.is_empty() {
                return all.into_iter().map(|(what, share)| (what, share / sum)).collect();
            }
        }
        Vec::new()
    }

    /// Where a next hop is that a list's entry covers.
    fn places(&self, list: &ListOf, live: bool) -> Shares<Place> {
        let end = |path: &Path| {
            let place = match path.via {
                Via::NextHop { interface, next_hop } => (interface, Some(next_hop)),
                Via::Attached { interface, .. } => (interface, None),
                _ => return None,
            };
            (!live || self.is_up(place.0, place.1)).then_some(place)
        };
        self.group(list, live, &|place| place, &end)
    }

    fn ends(&self, list: &ListOf, live: bool) -> Shares<Adj> {
        let link = Link::from(list.0);
        let neighbour = |(interface, next_hop): Place| {
            let adj = Adj::on(AdjKind::Incomplete, interface, 1500).with_link(link);
            adj.with_address(next_hop.unwrap())
        };
        let end = |path: &Path| {
            let up = |interface, next_hop| !live || self.is_up(interface, next_hop);
            Some(match path.via {
                Via::NextHop { interface, next_hop } if up(interface, Some(next_hop)) => {
                    neighbour((interface, Some(next_hop)))
                }
                Via::Attached { interface, source } if up(interface, None) => {
                    let fits = Family::of(source) == list.0;
                    let any = if list.0 == Family::Ip4 { [0; 4].into() } else { [0u16; 8].into() };
                    let source = if fits { source } else { any };
                    Adj::on(AdjKind::Glean, interface, 1500).with_link(link).with_address(source)
                }
                Via::InterfaceRx { interface } if up(interface, None) => {
                    Adj::on(AdjKind::InterfaceRx, interface, u16::MAX).with_link(link)
                }
                Via::NextHop { .. } | Via::Attached { .. } | Via::InterfaceRx { .. } => return None,
                Via::Drop => Adj::special(AdjKind::Drop),
                Via::Unreachable => Adj::special(AdjKind::Unreachable),
                Via::Lookup(fib) => Adj::lookup(fib.0).with_link(link),
                Via::Local { .. } => Adj::special(AdjKind::Local),
                other => panic!("not made by this test: {other:?}"),
            })
        };
        self.group(list, live, &neighbour, &end)
    }

    fn shares(&self, table: u32, addr: IpAddr) -> Shares<Adj> {
        let Some(list) = self.longest(table, addr) else { return Vec::new() };
        let up = self.ends(&list, true);
        if up.is_empty() { self.ends(&list, false) } else { up }
    }
}

/// On a link there is only the host itself in an entry for one host.
fn of_entry(prefix: &IpPrefix, source: Source, paths: &[Path]) -> Vec<Path> {
    let host = prefix.len() == prefix.max_len() && source != Source::Interface;
    let one = |path: &Path| match path.via {
        Via::Attached { interface, .. } if host => {
            Path { via: Via::NextHop { interface, next_hop: prefix.addr() }, ..*path }
        }
        _ => *path,
    };
    paths.iter().map(one).collect()
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
                let paths = of_entry(prefix, SOURCES[*source], paths);
                model.routes.insert((*table, *prefix, SOURCES[*source]), kept(&paths));
            }
        }
        Change::Withdraw { table, pick } => {
            let mine: Vec<Key> = model.routes.keys().filter(|(t, ..)| t == table).copied().collect();
            if let Some(key) = mine.get(pick % mine.len().max(1)) {
                router.fib.remove(FibIndex(*table), key.1, key.2).unwrap();
                model.routes.remove(key);
            }
        }
        Change::DeleteInterface(index) => {
            if router.interfaces.delete(SwIfIndex(*index)).is_ok() {
                for paths in model.routes.values_mut() {
                    paths.retain(|p| p.via.interface() != Some(SwIfIndex(*index)));
                }
                model.routes.retain(|_, paths| !paths.is_empty());
                model.silent.retain(|(i, _)| i != index);
            }
        }
        Change::SetInterface(index, up) => {
            if router.interfaces.set_admin(SwIfIndex(*index), *up).is_ok() {
                if *up {
                    model.down.remove(index)
                } else {
                    model.down.insert(*index)
                };
            }
        }
        Change::SetNextHop(index, addr, reach) => {
            if router.interfaces.data(SwIfIndex(*index)).is_ok() {
                router.fib.set_next_hop(SwIfIndex(*index), *addr, *reach);
                match reach {
                    Reach::Up => model.silent.remove(&(*index, *addr)),
                    Reach::Down => model.silent.insert((*index, *addr)),
                };
            }
        }
    }
}

fn addresses() -> Vec<IpAddr> {
    let mut all: Vec<IpAddr> = Vec::new();
    for a in [10u8, 11, 77, 100] {
        for (b, c, d) in (0..2u8).flat_map(|b| (0..2u8).flat_map(move |c| (0..4u8).map(move |d| (b, c, d)))) {
            for six in [false, true] {
                all.push(address_of(six, (a, b, c, d)));
            }
            all.push(Ipv4Addr::new(a, b, c * 128, d * 64 + 2).into());
        }
    }
    all
}

/// What packets meet: each bucket's adjacency, by shares.
fn met(router: &Router, table: u32, addr: IpAddr) -> Shares<Adj> {
    let (index, adj) = router.look_up(FibIndex(table), addr);
    assert_eq!(index, router.fib.lookup(FibIndex(table), addr));
    if adj.kind() == AdjKind::None {
        return Vec::new();
    }
    let buckets = router.adjacencies.members(index).map(|(_, buckets)| buckets).unwrap_or_default();
    if buckets.is_empty() {
        assert!(adj.kind() != AdjKind::Balance);
        return vec![(adj, 1.0)];
    }
    let each = 1.0 / buckets.len() as f64;
    let mut all: Shares<Adj> = Vec::new();
    for bucket in buckets {
        let adj = router.adjacencies.get(bucket);
        match all.iter_mut().find(|(a, _)| a.leads_where(&adj)) {
            Some((_, share)) => *share += each,
            None => all.push((adj, each)),
        }
    }
    all
}

/// How far a share may be off: what rounding costs (a tenth of all, as in VPP), and two buckets of at least 16 for
/// each member when members came and went.
const NEAR: f64 = 0.13;

fn compare(met: &Shares<Adj>, wanted: &Shares<Adj>) -> Result<(), String> {
    // A route that leads nowhere drops.
    let nowhere = vec![(Adj::special(AdjKind::Drop), 1.0)];
    let wanted = if wanted.is_empty() && !met.is_empty() { &nowhere } else { wanted };
    let fits =
        |(adj, share): &(Adj, f64)| met.iter().any(|(a, s)| a.leads_where(adj) && (s - share).abs() < NEAR);
    if met.len() == wanted.len() && wanted.iter().all(fits) {
        Ok(())
    } else {
        Err(format!("{met:?}\n{wanted:?}"))
    }
}

fn check(router: &Router, model: &Model, change: &Change) -> Result<(), TestCaseError> {
    for table in 0..2 {
        for addr in addresses() {
            let shares = met(router, table, addr);
            let wanted = model.shares(table, addr);
            let known = model.longest(table, addr).is_some();
            prop_assert_eq!(known, !shares.is_empty(), "{} in {} after {:?}", addr, table, change);
            if let Err(e) = compare(&shares, &wanted) {
                return Err(TestCaseError::fail(format!("{addr} in {table} after {change:?}:\n{e}")));
            }
        }
    }
    let broken = router.fib.check();
    prop_assert!(broken.is_empty(), "{:?} after {:?}", broken, change);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn packets_go_where_a_linear_search_says(changes in prop::collection::vec(change(), 1..40)) {
        let router = router(3);
        for family in Family::ALL {
            let incomplete = |interface, _, _| Adj::on(AdjKind::Incomplete, interface, 1500);
            router.adjacencies.set_describe(family, std::rc::Rc::new(incomplete));
            prop_assert_eq!(router.fib.add_table(family, 1, None).unwrap(), FibIndex(1));
        }
        let before = router.locks();
        let mut model = Model::default();
        for change in &changes {
            apply(&router, &mut model, change);
            model.copy();
            check(&router, &model, change)?;
        }
        for (table, prefix, source) in model.routes.keys() {
            router.fib.remove(FibIndex(*table), *prefix, *source).unwrap();
        }
        prop_assert_eq!(router.locks(), before, "adjacencies stay locked");
        prop_assert_eq!(router.fib.capacity().adjacencies.buckets, 0, "buckets stay taken");
        prop_assert!(router.fib.check().is_empty());
    }
}
