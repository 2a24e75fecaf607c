//! A table's entries in order of address, then length.
//!
//! A table keeps its entries by hash, in no order; the trie is in order of address and knows where prefixes begin. So a
//! walk asks the trie for the next address, and the table which lengths there are of it; a small table is looked through.
//! It is told by an address alone: however the table changes meanwhile, an entry that stays is met once.

use shoal_infra::mtrie::Begins;
use shoal_wire::IpPrefix;

use crate::address::Bits;
use crate::map::Map;
use crate::slot::Slot;
use crate::table::Routes;

/// Slots of the trie that are looked at before others are let in: some microseconds.
const AT_A_TIME: usize = 1024;

/// Bytes of entries up to which all of them are looked at: less than the slots of a trie's root, whatever is in it.
const FEW: usize = 8 << 10;

impl<A: Bits> Routes<A> {
    /// The entries at the next address from `from` on at which there are any, and where to go on; `None` behind the last.
    pub fn in_order(&self, from: u128, mut act: impl FnMut(IpPrefix, Slot<'_>)) -> Option<u128> {
        let from = A::try_from(from).ok()?;
        let at = if from == A::default() {
            // The trie does not tell of default routes.
            from
        } else {
            match self.begins(from) {
                Begins::At(at) => at,
                Begins::GoOn(at) => return Some(at.into()),
                Begins::End => return None,
            }
        };
        for len in at.shortest()..=A::FAMILY.max_len() {
            let word = self.map(len).filter(|map| !Map::is_empty(map)).and_then(|map| map.get(at));
            if let (Some(word), Some(prefix)) = (word, at.prefix(len)) {
                act(prefix, self.unpack(len, at, word));
            }
        }
        at.behind(A::BITS).map(Into::into)
    }

    /// The first address from `from` on at which an entry begins.
    fn begins(&self, from: A) -> Begins<A> {
        if self.lengths().map(Map::bytes).sum::<usize>() > FEW {
            return self.writer.begins(from, AT_A_TIME);
        }
        let networks = self.lengths().flat_map(|map| map.iter().map(|(network, _)| network));
        networks.filter(|network| *network >= from).min().map_or(Begins::End, Begins::At)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    use shoal_adj::Family;

    use super::*;
    use crate::router::router;
    use crate::{Fib, FibIndex, Source, Via};

    /// A small table is looked through, a large one is asked of the trie: both say the same.
    #[test]
    fn tables_of_any_size_are_listed_in_order() {
        for count in [0, 1, 50, 4000_u64] {
            for family in [Family::Ip4, Family::Ip6] {
                let router = router(1);
                let fib = router.control.get::<Fib>().unwrap();
                let key = |prefix: &IpPrefix| (prefix.network(), prefix.len());
                let listed = || -> Vec<(IpAddr, u8)> {
                    let all = fib.entries(family, FibIndex::DEFAULT).unwrap();
                    all.iter().map(|entry| key(&entry.prefix)).collect()
                };
                let before = listed();
                let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let prefix = |n: u64| {
                    let (address, most): (IpAddr, u64) = match family {
                        Family::Ip4 => (((random(n) >> 32) as u32 | 1 << 24).to_be_bytes().into(), 25),
                        Family::Ip6 => {
                            ((0x20 << 120 | u128::from(random(n)) << 40).to_be_bytes().into(), 113)
                        }
                    };
                    IpPrefix::new(address, 8 + (random(n + 1) >> 8) as u8 % most as u8).unwrap()
                };
                let new: BTreeSet<IpPrefix> = (0..count).map(prefix).collect();
                fib.add_many(FibIndex::DEFAULT, new.iter().copied(), Source::Cli, &[Via::Drop.into()])
                    .unwrap();
                let expected: BTreeSet<(IpAddr, u8)> =
                    before.into_iter().chain(new.iter().map(key)).collect();
                assert_eq!(listed(), expected.into_iter().collect::<Vec<_>>(), "{count} {family:?}");
            }
        }
    }
}
