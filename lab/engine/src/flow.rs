//! What a NAT made of flows: the responder's state table of RFC 9693, and the checks on it.
//!
//! A frame that arrives says by its number which tuple it was sent with, because a stream's values depend on the number
//! only. So each translation is compared with the flow's own: two flows may not share one, and a flow may not change its.
//! Answers take their addresses from the table in an order that follows from their number, too, so the tuple that has to come
//! back is known without anything being remembered for a frame.

use std::net::IpAddr;

use shoal_lab_frame::Tuple;
use shoal_lab_plan::{Learnt, Order};

/// Examples that are kept for people.
const EXAMPLES: usize = 10;
/// A free slot of an index.
const FREE: u32 = u32::MAX;

/// One flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    original: Tuple,
    translated: Tuple,
}

/// Finds flows by a tuple: open addressing with half of the slots free, numbers only, so that millions of flows fit.
#[derive(Debug, Default)]
struct Index(Vec<u32>);

impl Index {
    fn new(flows: usize) -> Index {
        Index(vec![FREE; (flows * 2).next_power_of_two().max(2)])
    }

    /// The slot at which a search for `tuple` ends, and the flow there, if it is one for which `is_it`.
    fn find(&self, tuple: &Tuple, is_it: impl Fn(u32) -> bool) -> (usize, Option<u32>) {
        let mask = self.0.len().saturating_sub(1);
        let mut at = hash(tuple) as usize & mask;
        loop {
            match self.0.get(at).copied().unwrap_or(FREE) {
                FREE => return (at, None),
                flow if is_it(flow) => return (at, Some(flow)),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn put(&mut self, at: usize, flow: u32) {
        if let Some(slot) = self.0.get_mut(at) {
            *slot = flow;
        }
    }
}

fn hash(tuple: &Tuple) -> u64 {
    let fold = |address: IpAddr| match address {
        IpAddr::V4(a) => u64::from(u32::from(a)),
        IpAddr::V6(a) => {
            let bits = u128::from(a);
            (bits >> 64) as u64 ^ (bits as u64).rotate_left(29)
        }
    };
    let ports = u64::from(tuple.source_port) << 16 | u64::from(tuple.destination_port);
    let mixed = mix(fold(tuple.source)) ^ fold(tuple.destination).rotate_left(32);
    mix(mix(mixed) ^ ports << 8 ^ u64::from(tuple.protocol))
}

/// splitmix64's finaliser: each bit of the input moves half of the output's.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The same flow in the other direction.
pub(crate) fn reversed(tuple: &Tuple) -> Tuple {
    Tuple {
        source: tuple.destination,
        destination: tuple.source,
        source_port: tuple.destination_port,
        destination_port: tuple.source_port,
        protocol: tuple.protocol,
    }
}

/// Flows in the order in which they were learnt.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    flows: Vec<Flow>,
    by_original: Index,
    by_translated: Index,
    most: usize,
    /// For [`Order::Permutation`]; made when it is first asked for.
    permuted: Vec<u32>,
    seed: u64,
}

impl FlowTable {
    /// Bytes of a table for `most` flows.
    pub(crate) fn bytes(most: u32) -> u64 {
        let most = u64::from(most);
        most * size_of::<Flow>() as u64 + 2 * 4 * (2 * most).next_power_of_two()
    }

    /// An empty one.
    pub(crate) fn new(most: u32, seed: u64) -> FlowTable {
        let most = most as usize;
        FlowTable {
            flows: Vec::with_capacity(most),
            by_original: Index::new(most),
            by_translated: Index::new(most),
            most,
            permuted: Vec::new(),
            seed,
        }
    }

    /// Flows in it.
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// A frame that was sent with `original` came with `translated`.
    pub(crate) fn learn(&mut self, original: &Tuple, translated: &Tuple, learnt: &mut Learnt) {
        let original_of = |flow: u32| self.flows.get(flow as usize).map(|f| f.original);
        let translated_of = |flow: u32| self.flows.get(flow as usize).map(|f| f.translated);
        let (at, known) = self.by_original.find(original, |flow| original_of(flow) == Some(*original));
        if let Some(flow) = known {
            let before = translated_of(flow);
            if before.is_some_and(|before| before != *translated) {
                learnt.not_stable += 1;
                note(learnt, || {
                    format!("{} became {}, then {}", show(original), show_some(before), show(translated))
                });
            }
            return;
        }
        if self.flows.len() >= self.most {
            return;
        }
        let flow = self.flows.len() as u32;
        let (place, other) =
            self.by_translated.find(translated, |flow| translated_of(flow) == Some(*translated));
        if let Some(other) = other {
            learnt.not_unique += 1;
            let other = original_of(other);
            note(learnt, || {
                format!("{} and {} became {}", show_some(other), show(original), show(translated))
            });
        } else {
            self.by_translated.put(place, flow);
        }
        self.by_original.put(at, flow);
        self.flows.push(Flow { original: *original, translated: *translated });
    }

    /// A frame that was sent with `original` came with `translated` after all was learnt; whether that is what the flow
    /// became before. Flows that were not learnt may become anything.
    pub(crate) fn is_stable(&self, original: &Tuple, translated: &Tuple, learnt: &mut Learnt) -> bool {
        let is_it = |flow: u32| self.flows.get(flow as usize).is_some_and(|f| f.original == *original);
        let (_, known) = self.by_original.find(original, is_it);
        let before = known.and_then(|flow| self.flows.get(flow as usize)).map(|f| f.translated);
        if before.is_none_or(|before| before == *translated) {
            return true;
        }
        learnt.not_stable += 1;
        note(learnt, || {
            format!("{} became {}, then {}", show(original), show_some(before), show(translated))
        });
        false
    }

    /// Whether a frame of this flow has come.
    pub(crate) fn has(&self, original: &Tuple) -> bool {
        let is_it = |flow: u32| self.flows.get(flow as usize).is_some_and(|f| f.original == *original);
        self.by_original.find(original, is_it).1.is_some()
    }

    /// Makes answers in `order` ready.
    pub(crate) fn prepare(&mut self, order: Order) {
        if order == Order::Permutation && self.permuted.len() != self.flows.len() {
            self.permuted = (0..self.flows.len() as u32).collect();
            fastrand::Rng::with_seed(self.seed).shuffle(&mut self.permuted);
        }
    }

    /// The flow that answer `sequence` belongs to.
    #[inline]
    fn chosen(&self, order: Order, sequence: u64) -> Option<&Flow> {
        let count = self.flows.len() as u64;
        let turn = sequence.checked_rem(count)?;
        let flow = match order {
            Order::Rising => turn,
            Order::Falling => count - 1 - turn,
            // A product's upper half: the share that any flow has too much is below 2^-40.
            Order::Random => ((u128::from(mix(sequence ^ mix(self.seed))) * u128::from(count)) >> 64) as u64,
            Order::Permutation => self.permuted.get(turn as usize).copied().map_or(turn, u64::from),
        };
        self.flows.get(flow as usize)
    }

    /// The tuple that answer `sequence` is sent with.
    #[inline]
    pub(crate) fn answer(&self, order: Order, sequence: u64) -> Option<Tuple> {
        self.chosen(order, sequence).map(|flow| reversed(&flow.translated))
    }

    /// Answer `sequence` came back with `arrived`; whether that is the flow's own tuple.
    pub(crate) fn check(&self, order: Order, sequence: u64, arrived: &Tuple, learnt: &mut Learnt) -> bool {
        let Some(flow) = self.chosen(order, sequence) else { return true };
        let wanted = reversed(&flow.original);
        if *arrived == wanted {
            return true;
        }
        learnt.not_restored += 1;
        note(learnt, || format!("an answer to {} came back as {}", show(&wanted), show(arrived)));
        false
    }
}

fn note(learnt: &mut Learnt, text: impl FnOnce() -> String) {
    if learnt.examples.len() < EXAMPLES {
        learnt.examples.push(text());
    }
}

fn show_some(tuple: Option<Tuple>) -> String {
    tuple.as_ref().map(show).unwrap_or_default()
}

fn show(tuple: &Tuple) -> String {
    let Tuple { source, destination, source_port, destination_port, protocol } = tuple;
    format!("{source} port {source_port} to {destination} port {destination_port} (protocol {protocol})")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    use super::*;

    fn tuple(n: u32) -> Tuple {
        Tuple {
            source: IpAddr::V4(Ipv4Addr::from(0xc612_0000 + n)),
            destination: IpAddr::V4(Ipv4Addr::new(198, 19, 0, 2)),
            source_port: 1024,
            destination_port: 80,
            protocol: 17,
        }
    }

    fn table(flows: u32) -> FlowTable {
        let (mut table, mut learnt) = (FlowTable::new(flows, 7), Learnt::default());
        (0..flows).for_each(|n| table.learn(&tuple(n), &tuple(n + 100_000), &mut learnt));
        assert_eq!(learnt, Learnt::default());
        table
    }

    #[test]
    fn a_flow_keeps_its_translation_and_shares_it_with_nobody() {
        let (mut table, mut learnt) = (table(3), Learnt::default());
        table.learn(&tuple(1), &tuple(100_001), &mut learnt);
        assert_eq!(learnt, Learnt::default());
        table.learn(&tuple(1), &tuple(100_009), &mut learnt);
        assert_eq!((learnt.not_stable, learnt.not_unique, learnt.examples.len()), (1, 0, 1));
        assert!(learnt.examples[0].contains("198.18.0.1 port 1024"), "{learnt:?}");
        let mut table = FlowTable::new(5, 7);
        table.learn(&tuple(1), &tuple(50), &mut learnt);
        table.learn(&tuple(2), &tuple(50), &mut learnt);
        assert_eq!((learnt.not_stable, learnt.not_unique), (1, 1));
    }

    #[test]
    fn a_flow_that_becomes_another_later_is_found() {
        let (table, mut learnt) = (table(3), Learnt::default());
        assert!(table.is_stable(&tuple(1), &tuple(100_001), &mut learnt));
        assert!(table.is_stable(&tuple(7), &tuple(9), &mut learnt), "it was never learnt");
        assert!(!table.is_stable(&tuple(1), &tuple(100_002), &mut learnt));
        assert_eq!((learnt.not_stable, learnt.examples.len()), (1, 1));
    }

    #[test]
    fn a_full_table_learns_no_more() {
        let (mut table, mut learnt) = (table(1000), Learnt::default());
        table.learn(&tuple(5000), &tuple(6000), &mut learnt);
        assert_eq!(table.len(), 1000);
        assert!(table.has(&tuple(999)) && !table.has(&tuple(5000)));
    }

    #[test]
    fn answers_come_in_the_order_that_was_asked_for() {
        let mut table = table(4);
        let mut answers = |order| {
            table.prepare(order);
            (0..8).map(|n| table.answer(order, n).unwrap().destination).collect::<Vec<_>>()
        };
        let at = |n: u32| tuple(n + 100_000).source;
        assert_eq!(answers(Order::Rising), [0, 1, 2, 3, 0, 1, 2, 3].map(at));
        assert_eq!(answers(Order::Falling), [3, 2, 1, 0, 3, 2, 1, 0].map(at));
        let permuted = answers(Order::Permutation);
        assert_eq!(permuted[..4], permuted[4..]);
        assert_eq!(permuted[..4].iter().collect::<BTreeSet<_>>().len(), 4);
        assert_eq!(FlowTable::new(4, 1).answer(Order::Rising, 0), None);
    }

    #[test]
    fn random_answers_reach_all_flows_about_as_often() {
        let table = table(16);
        let mut counts = std::collections::BTreeMap::new();
        (0..16_000).for_each(|n| *counts.entry(table.answer(Order::Random, n)).or_insert(0u32) += 1);
        assert_eq!(counts.len(), 16);
        assert!(counts.values().all(|n| (850..1150).contains(n)), "{counts:?}");
    }

    #[test]
    fn an_answer_has_to_come_back_to_the_flows_own_tuple() {
        let (table, mut learnt) = (table(3), Learnt::default());
        assert!(table.check(Order::Rising, 1, &reversed(&tuple(1)), &mut learnt));
        assert!(!table.check(Order::Rising, 1, &reversed(&tuple(2)), &mut learnt));
        assert_eq!(learnt.not_restored, 1);
    }
}
