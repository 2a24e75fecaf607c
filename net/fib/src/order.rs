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
        let filled = || self.lengths().filter(|map| !map.is_empty());
        if filled().map(Map::bytes).sum::<usize>() > FEW {
            return self.writer.begins(from, AT_A_TIME);
        }
        let networks = filled().flat_map(|map| map.iter().map(|(network, _)| network));
        networks.filter(|network| *network >= from).min().map_or(Begins::End, Begins::At)
    }
}
