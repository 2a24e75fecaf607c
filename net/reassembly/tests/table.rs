//! The bookkeeping against a map of bytes: whatever fragments come in whatever order, a datagram is whole exactly when
//! each of its bytes was there once.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use shoal_graph::clock::Time;
use shoal_reassembly::budget::Budget;
use shoal_reassembly::table::{Arrival, Items, Limits, Outcome, ReleaseReason, Table, WaitFor};

const LIMITS: Limits = Limits { datagrams: 8, fragments: 16, until: WaitFor::First };

/// A fragment that knows its number and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    number: usize,
    arrival: Arrival,
    content: u8,
}

#[derive(Default)]
struct ClientGone(Vec<(usize, ReleaseReason, bool)>);

impl Items<Item> for ClientGone {
    fn same(&mut self, old: &mut Item, new: &mut Item) -> bool {
        old.content == new.content
    }

    fn gone(&mut self, item: Item, why: ReleaseReason, first: bool) {
        self.0.push((item.number, why, first));
    }
}

fn arrival(start: u32, end: u32, more: bool) -> Arrival {
    Arrival { start, end, more, ecn: 0, buffers: 1 }
}

fn insert(
    table: &mut Table<u8, Item>,
    key: u8,
    item: Item,
    limits: Limits,
    gone: &mut ClientGone,
) -> Option<Vec<Item>> {
    match table.insert(key, item.arrival, item, (limits, Time(0)), gone) {
        Outcome::Whole(whole) => {
            let mut all: Vec<Item> = std::iter::from_fn(|| table.pop_last(&whole)).collect();
            all.reverse();
            assert_eq!(all.len(), whole.fragments as usize);
            assert_eq!(all.last().unwrap().arrival.end, whole.len);
            Some(all)
        }
        _ => None,
    }
}

fn add(table: &mut Table<u8, Item>, number: usize, a: Arrival, gone: &mut ClientGone) -> Option<Vec<Item>> {
    insert(table, 1, Item { number, arrival: a, content: 0 }, LIMITS, gone)
}

/// What a datagram's bytes say of it: the rules of RFC 5722 and RFC 8200, on a map of bytes.
#[derive(Default)]
struct Oracle {
    bytes: BTreeMap<u32, usize>,
    taken: Vec<Item>,
    given_up: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Held,
    Whole,
    Refused(ReleaseReason),
}

impl Oracle {
    fn len(&self) -> Option<u32> {
        self.taken.iter().find(|i| !i.arrival.more).map(|i| i.arrival.end)
    }

    fn judge(&mut self, item: &Item) -> Verdict {
        let a = item.arrival;
        if self.given_up {
            return Verdict::Refused(ReleaseReason::GivenUp);
        }
        let place = |a: Arrival| (a.start, a.end, a.more);
        if let Some(old) = self.taken.iter().find(|i| place(i.arrival) == place(a))
            && old.content == item.content
        {
            return Verdict::Refused(ReleaseReason::Duplicate);
        }
        let overlaps = (a.start..a.end).any(|b| self.bytes.contains_key(&b));
        let past_end = self.len().is_some_and(|len| a.end > len || !a.more);
        let short = !a.more && self.bytes.keys().next_back().is_some_and(|last| *last >= a.end);
        if overlaps || past_end || short {
            self.given_up = true;
            return Verdict::Refused(ReleaseReason::Overlap);
        }
        if self.taken.len() as u32 >= LIMITS.fragments {
            self.given_up = true;
            return Verdict::Refused(ReleaseReason::TooMany);
        }
        self.bytes.extend((a.start..a.end).map(|b| (b, item.number)));
        self.taken.push(item.clone());
        let whole = self.len().is_some_and(|len| (0..len).all(|b| self.bytes.contains_key(&b)));
        if whole { Verdict::Whole } else { Verdict::Held }
    }
}

fn pieces() -> impl Strategy<Value = Vec<(u32, u32, bool, u8)>> {
    // Few places and few lengths, so that every shape of overlap comes up, and datagrams become whole, too.
    proptest::collection::vec((0u32..8, 1u32..4, proptest::bool::weighted(0.8), 0u8..2), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_datagram_is_whole_exactly_when_each_byte_is_there_once(pieces in pieces()) {
        let budget = Budget::new(1000);
        let mut table = Table::new(budget.clone());
        let (mut oracle, mut gone) = (Oracle::default(), ClientGone::default());
        let mut in_table = 0;
        for (number, (start, len, more, content)) in pieces.into_iter().enumerate() {
            let item = Item { number, arrival: arrival(start * 8, (start + len) * 8, more), content };
            let expected = oracle.judge(&item);
            gone.0.clear();
            let whole = insert(&mut table, 1, item, LIMITS, &mut gone);
            match expected {
                Verdict::Whole => {
                    let mut taken = std::mem::take(&mut oracle).taken;
                    taken.sort_by_key(|i| i.arrival.start);
                    prop_assert_eq!(whole, Some(taken));
                    in_table = 0;
                }
                Verdict::Held => {
                    in_table += 1;
                    prop_assert!(whole.is_none() && gone.0.is_empty());
                }
                Verdict::Refused(why) => {
                    prop_assert!(whole.is_none());
                    prop_assert_eq!(gone.0[0], (number, why, false));
                    if matches!(why, ReleaseReason::Overlap | ReleaseReason::TooMany) {
                        prop_assert_eq!(gone.0.len(), in_table + 1);
                        in_table = 0;
                    }
                }
            }
            prop_assert_eq!(table.fragments(), in_table);
            prop_assert_eq!(budget.held() as usize, in_table);
        }
        table.expire(Time(u64::MAX), Duration::ZERO, usize::MAX, &mut gone);
        prop_assert_eq!((budget.held(), table.len(), table.fragments()), (0, 0, 0));
    }

    #[test]
    fn any_order_gives_the_same_datagram(order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut table = Table::new(Budget::new(100));
        let mut gone = ClientGone::default();
        for (n, at) in order.iter().enumerate() {
            let a = arrival(*at as u32 * 16, *at as u32 * 16 + 16, *at != 11);
            let whole = add(&mut table, *at, a, &mut gone);
            if n < 11 {
                prop_assert!(whole.is_none());
            } else {
                let numbers: Vec<usize> = whole.unwrap().iter().map(|i| i.number).collect();
                prop_assert_eq!(numbers, (0..12).collect::<Vec<_>>());
            }
        }
        prop_assert!(gone.0.is_empty() && table.is_empty());
    }
}

#[test]
fn too_many_datagrams_cost_the_oldest() {
    let mut table = Table::new(Budget::new(100));
    let mut gone = ClientGone::default();
    for key in 0..10 {
        let item = Item { number: usize::from(key), arrival: arrival(0, 8, true), content: 0 };
        insert(&mut table, key, item, LIMITS, &mut gone);
    }
    assert_eq!(table.len(), 8);
    assert_eq!(gone.0, [(0, ReleaseReason::Evicted, true), (1, ReleaseReason::Evicted, true)]);
    // None may be held: nothing is.
    let item = Item { number: 10, arrival: arrival(0, 8, true), content: 0 };
    insert(&mut table, 100, item, Limits { datagrams: 0, ..LIMITS }, &mut gone);
    assert_eq!((gone.0.last(), table.len()), (Some(&(10, ReleaseReason::Evicted, false)), 0));
}

#[test]
fn buffers_that_run_short_cost_the_oldest_but_never_the_datagram_in_hand() {
    let budget = Budget::new(5);
    let mut table = Table::new(budget.clone());
    let mut gone = ClientGone::default();
    let mut put = |key, number: u32, buffers| {
        let a = Arrival { buffers, ..arrival(number * 8, number * 8 + 8, true) };
        let item = Item { number: number as usize, arrival: a, content: 0 };
        assert!(insert(&mut table, key, item, LIMITS, &mut gone).is_none());
        gone.0.drain(..).map(|(n, why, _)| (n, why)).collect::<Vec<_>>()
    };
    assert_eq!(put(1, 0, 2), []);
    assert_eq!(put(2, 1, 2), []);
    assert_eq!(
        put(1, 2, 2),
        [(1, ReleaseReason::NoBuffers)],
        "the younger one, because the older is in hand"
    );
    assert_eq!(put(1, 3, 2), [(3, ReleaseReason::NoBuffers)], "no other datagram can give way");
    assert_eq!(
        put(3, 4, 6),
        [(2, ReleaseReason::NoBuffers), (0, ReleaseReason::NoBuffers), (4, ReleaseReason::NoBuffers)]
    );
    assert_eq!((budget.held(), table.len()), (0, 0));
}

#[test]
fn time_is_counted_from_the_first_fragment_to_come() {
    let mut table = Table::new(Budget::new(100));
    let mut gone = ClientGone::default();
    let second = 1_000_000_000;
    for (key, at, start) in [(1u8, 0, 0), (2, 10, 8), (1, 15, 8)] {
        let a = arrival(start, start + 8, true);
        let item = Item { number: usize::from(key), arrival: a, content: 0 };
        table.insert(key, a, item, (LIMITS, Time(at * second)), &mut gone);
    }
    let timeout = Duration::from_secs(20);
    assert_eq!(table.expire(Time(19 * second), timeout, 10, &mut gone), 0);
    assert_eq!(table.expire(Time(20 * second), timeout, 10, &mut gone), 1);
    assert_eq!(gone.0, [(1, ReleaseReason::Timeout, false), (1, ReleaseReason::Timeout, true)]);
    assert_eq!(table.expire(Time(30 * second), timeout, 10, &mut gone), 1);
    assert_eq!(gone.0.last(), Some(&(2, ReleaseReason::Timeout, false)), "its first fragment never came");
    assert!(table.is_empty());
}

#[test]
fn marks_of_congestion_are_put_together_by_rfc_3168() {
    // Not-ECT, ECT(1), ECT(0), CE.
    for (marks, expected) in [
        (vec![0, 0], Some(0)),
        (vec![2, 3, 2], Some(3)),
        (vec![1, 3], Some(3)),
        (vec![2, 2], Some(2)),
        (vec![1, 1], Some(1)),
        (vec![0, 3], None),
        (vec![0, 2], Some(0)),
    ] {
        let mut table = Table::new(Budget::new(100));
        let mut gone = ClientGone::default();
        let last = marks.len() - 1;
        let mut got = None;
        for (n, ecn) in marks.iter().enumerate() {
            let at = n as u32 * 8;
            let a = Arrival { ecn: *ecn, ..arrival(at, at + 8, n != last) };
            let item = Item { number: n, arrival: a, content: 0 };
            if let Outcome::Whole(whole) = table.insert(1, a, item, (LIMITS, Time(0)), &mut gone) {
                got = Some(whole.ecn);
                while table.pop_last(&whole).is_some() {}
            }
        }
        assert_eq!(got, expected, "{marks:?}");
        assert!(gone.0.iter().all(|g| g.1 == ReleaseReason::Ecn));
        assert!(table.is_empty());
    }
}

/// Parts of tables change hands, in whatever order datagrams began: nothing is lost or twice there, the order of age stays,
/// and what is whole afterwards is what would have been whole without.
#[test]
fn datagrams_move_between_tables_with_their_fragments() {
    let budget = Budget::new(100);
    let tables = || Table::<u8, Item>::new(budget.clone());
    let (mut all, mut gone) = ([tables(), tables()], ClientGone::default());
    let item = |number, arrival| Item { number, arrival, content: 0 };
    let halves = [arrival(0, 8, true), arrival(16, 24, false), arrival(8, 16, true)];
    // Datagram n began at n, on the thread of its oddness; two fragments of three are there.
    for key in 0..8u8 {
        let table = &mut all[usize::from(key % 2)];
        for half in &halves[..2] {
            let limits = (Limits { datagrams: 100, ..LIMITS }, Time(u64::from(key)));
            table.insert(key, *half, item(usize::from(key), *half), limits, &mut gone);
        }
    }
    let held = budget.held();
    // Now datagrams below 4 are the first's.
    let owner = |key: &u8| usize::from(*key >= 4);
    let parts: Vec<_> = (0..2).flat_map(|here| all[here].part(Some(here), owner)).collect();
    assert_eq!(parts.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1, 0]);
    for (to, part) in parts {
        assert_eq!((part.len(), part.fragments()), (2, 4));
        all[to].take_in(part, &mut gone);
    }
    for (table, keys) in all.iter().zip([[0, 1, 2, 3], [4, 5, 6, 7]]) {
        assert_eq!(table.list(9).iter().map(|seen| seen.key).collect::<Vec<_>>(), keys);
        assert!(table.list(9).iter().all(|seen| (seen.bytes, seen.len) == (16, Some(24))));
    }
    assert_eq!((budget.held(), gone.0.len()), (held, 0));
    // A thread ends: all goes to the other. One datagram has begun there again meanwhile.
    let mut ended = std::mem::replace(&mut all[0], tables());
    insert(&mut all[1], 3, item(33, halves[2]), LIMITS, &mut gone);
    for (to, part) in ended.part(None, |_| 1) {
        all[to].take_in(part, &mut gone);
    }
    assert!(ended.is_empty());
    assert_eq!(gone.0, [(3, ReleaseReason::Evicted, false), (3, ReleaseReason::Evicted, true)]);
    let limits = Limits { datagrams: 100, ..LIMITS };
    for key in (0..8u8).filter(|key| *key != 3) {
        let whole = insert(&mut all[1], key, item(99, halves[2]), limits, &mut gone).unwrap();
        assert_eq!(whole.iter().map(|item| item.number).collect::<Vec<_>>(), [key.into(), 99, key.into()]);
    }
    // By the order of age the one that began again, at 0, is the oldest.
    assert_eq!(all[1].expire(Time(1), Duration::ZERO, 9, &mut gone), 1);
    assert_eq!((budget.held(), all[1].len()), (0, 0));
}
