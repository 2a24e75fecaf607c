//! Where prefixes begin: a trie is in order of address, which tables of prefixes by hash are not.
//!
//! An address is the first one of a prefix that was inserted exactly if it is the first one of the longest prefix that
//! covers it: that one is inside of any other that begins there. And each slot knows the length of the longest prefix that
//! covers it. So a walk over slots meets all addresses at which prefixes begin, in order, without any memory of its own.

use super::super::bucket;
use super::{Address, MtrieWriter, Node, slot_of};
use crate::mtrie::address::{slot_length, width};

/// What a step of a search for the next prefix found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins<A> {
    /// Prefixes begin at this address, and none between where the search began and here.
    At(A),
    /// None begins before this address, from which the search goes on.
    GoOn(A),
    /// None begins any more.
    End,
}

impl<A: Address> MtrieWriter<A> {
    /// The first address from `from` on at which a prefix begins. After some `most` slots the search stops, to be taken
    /// up later. A prefix of length 0 is not met: what it fills is like what nothing does.
    pub fn begins(&self, from: A, most: usize) -> Begins<A> {
        let (mut at, mut left) = (from, most);
        loop {
            let (mut node, mut level) = (Node::Root, 0);
            let mut slot = slot_of(at, level);
            while let Some(child) = self.entry(node, slot).as_ply() {
                (node, level) = (Node::Ply(child as u32), level + 1);
                slot = slot_of(at, level);
            }
            // As far as the slots of this node lead without another ply.
            loop {
                if let Some(found) = self.begins_in(node, level, slot, at) {
                    return Begins::At(found);
                }
                let Some(next) = at.behind(slot_length(level)) else { return Begins::End };
                (at, slot, left) = (next, slot + 1, left.saturating_sub(1));
                if left == 0 {
                    return Begins::GoOn(at);
                }
                if slot >= slots_of(level) || self.entry(node, slot).as_ply().is_some() {
                    break;
                }
            }
        }
    }

    /// The first address from `from` on, which is in this slot, at which a prefix begins; the slot holds no ply.
    fn begins_in(&self, node: Node, level: u8, slot: usize, from: A) -> Option<A> {
        let start = from.network(slot_length(level));
        let first = |length: u8| start.network(length) == start && start >= from && length > 0;
        let Some(line) = self.entry(node, slot).as_bucket() else {
            return first(self.length(node, slot)).then_some(start);
        };
        let (_, rest) = self.rest(line);
        if first(rest) {
            return Some(start);
        }
        let words = self.words(line);
        let items = bucket::items(&words, start.upper()).flatten();
        items.map(|item| A::from_upper(item.upper)).filter(|at| *at >= from).min()
    }
}

/// Slots of a node of this level.
fn slots_of(level: u8) -> usize {
    if level == 0 { super::ROOT } else { width(level) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::mtrie::Mtrie;

    fn all<A: Address + std::fmt::Debug>(writer: &MtrieWriter<A>, most: usize) -> Vec<A> {
        let (mut all, mut from) = (Vec::new(), A::default());
        loop {
            match writer.begins(from, most) {
                Begins::At(at) => {
                    assert!(at >= from);
                    all.push(at);
                    let Some(next) = at.behind(A::BITS) else { return all };
                    from = next;
                }
                Begins::GoOn(at) => {
                    assert!(at > from);
                    from = at;
                }
                Begins::End => return all,
            }
        }
    }

    /// Inserts and removes prefixes of all lengths, near each other and far, and compares with what is there.
    fn meets_all<A: Address + std::fmt::Debug>(address: impl Fn(u64, u64) -> A) {
        let (_trie, mut writer) = Mtrie::<A>::new(20_000).unwrap();
        let mut there: BTreeSet<(A, u8)> = BTreeSet::new();
        let mut state = 11u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for round in 0..6_000 {
            // Few upper bits, so that prefixes lie inside each other.
            let len = (random() % u64::from(A::BITS) + 1) as u8;
            let addr = address(random() % 3, random() << 31 ^ random()).network(len);
            if random() % 3 == 0 {
                let Some(&(addr, len)) = there.iter().nth(random() as usize % there.len().max(1)) else {
                    continue;
                };
                let cover = (0..len).rev().find(|l| there.contains(&(addr.network(*l), *l)));
                writer.remove(addr, len, cover.map(|l| (7, l))).unwrap();
                there.remove(&(addr, len));
            } else {
                writer.insert(addr, len, 7).unwrap();
                there.insert((addr, len));
            }
            if round % 200 == 199 {
                let begins: Vec<A> =
                    there.iter().map(|(addr, _)| *addr).collect::<BTreeSet<A>>().into_iter().collect();
                assert_eq!(all(&writer, 1 << 20), begins);
                assert_eq!(all(&writer, 7), begins);
            }
        }
    }

    #[test]
    fn a_walk_meets_each_address_at_which_a_prefix_begins_in_order() {
        meets_all::<u32>(|top, low| (top as u32) << 22 | low as u32 & 0x3_ffff);
        meets_all::<u128>(|top, low| u128::from(top) << 100 | u128::from(low) << 38 | u128::from(low & 0xff));
        meets_all::<u128>(|top, low| u128::from(top) << 90 | u128::from(low & 0x3f) << 64);
    }

    #[test]
    fn the_last_address_ends_the_walk_and_an_empty_trie_has_none() {
        let (_trie, mut writer) = Mtrie::<u32>::new(100).unwrap();
        assert_eq!(all(&writer, 1000), []);
        writer.insert(u32::MAX, 32, 1).unwrap();
        writer.insert(0, 0, 1).unwrap();
        assert_eq!(all(&writer, 1000), [u32::MAX]);
    }
}
