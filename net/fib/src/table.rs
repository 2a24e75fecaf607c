//! One table as the control plane sees it: entries by length and network, and the trie's writer.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use shoal_infra::Mtrie4Writer;
use shoal_wire::Ip4Prefix;

use crate::list::ListId;
use crate::{FibIndex, Source};

/// What one source wants of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contribution {
    pub source: Source,
    pub list: ListId,
}

/// A prefix and everybody who contributes to it. Nearly all have one contributor, so that one needs no box.
#[derive(Debug)]
pub(crate) struct Slot {
    best: Contribution,
    #[allow(clippy::box_collection, reason = "16 bytes less in each of a million entries")]
    others: Option<Box<Vec<Contribution>>>,
}

impl Slot {
    pub fn new(first: Contribution) -> Slot {
        Slot { best: first, others: None }
    }

    /// The one that decides.
    pub fn best(&self) -> Contribution {
        self.best
    }

    /// All contributions, best first.
    pub fn all(&self) -> impl Iterator<Item = Contribution> + '_ {
        std::iter::once(self.best).chain(self.others.iter().flat_map(|o| o.iter().copied()))
    }

    /// What a source contributes.
    pub fn of(&self, source: Source) -> Option<ListId> {
        self.all().find(|c| c.source == source).map(|c| c.list)
    }

    /// Puts a contribution in its place; gives back what the source contributed before.
    pub fn put(&mut self, new: Contribution) -> Option<ListId> {
        let old = self.of(new.source);
        let mut all: Vec<Contribution> = self.all().filter(|c| c.source != new.source).collect();
        let at = all.partition_point(|c| c.source < new.source);
        all.insert(at, new);
        self.set(all);
        old
    }

    /// Takes a source's contribution out; `false` when that was the last.
    pub fn take(&mut self, source: Source) -> bool {
        let all: Vec<Contribution> = self.all().filter(|c| c.source != source).collect();
        let left = !all.is_empty();
        self.set(all);
        left
    }

    fn set(&mut self, all: Vec<Contribution>) {
        let mut all = all.into_iter();
        if let Some(best) = all.next() {
            self.best = best;
            let others: Vec<Contribution> = all.collect();
            self.others = if others.is_empty() { None } else { Some(Box::new(others)) };
        }
    }
}

/// One table.
pub(crate) struct Table {
    pub id: u32,
    pub index: FibIndex,
    pub name: Option<String>,
    pub writer: Mtrie4Writer,
    pub locks: BTreeMap<Source, usize>,
    /// Entries by prefix length, then network.
    by_len: Vec<HashMap<u32, Slot>>,
}

impl Table {
    pub fn new(id: u32, index: FibIndex, name: Option<String>, writer: Mtrie4Writer) -> Table {
        let by_len = (0..=Ip4Prefix::MAX_LEN).map(|_| HashMap::new()).collect();
        Table { id, index, name, writer, locks: BTreeMap::new(), by_len }
    }

    pub fn get(&self, prefix: Ip4Prefix) -> Option<&Slot> {
        self.by_len.get(usize::from(prefix.len()))?.get(&prefix.network().to_bits())
    }

    pub fn get_mut(&mut self, prefix: Ip4Prefix) -> Option<&mut Slot> {
        self.by_len.get_mut(usize::from(prefix.len()))?.get_mut(&prefix.network().to_bits())
    }

    pub fn insert(&mut self, prefix: Ip4Prefix, slot: Slot) {
        if let Some(map) = self.by_len.get_mut(usize::from(prefix.len())) {
            map.insert(prefix.network().to_bits(), slot);
        }
    }

    pub fn remove(&mut self, prefix: Ip4Prefix) {
        if let Some(map) = self.by_len.get_mut(usize::from(prefix.len())) {
            map.remove(&prefix.network().to_bits());
        }
    }

    /// The longest entry that covers an address and is shorter than `below` bits.
    pub fn longest(&self, addr: Ipv4Addr, below: u8) -> Option<(Ip4Prefix, &Slot)> {
        self.covers(addr, below).next()
    }

    /// All entries that cover an address and are shorter than `below` bits, the longest first.
    pub fn covers(&self, addr: Ipv4Addr, below: u8) -> impl Iterator<Item = (Ip4Prefix, &Slot)> {
        let lengths = (0u8..).zip(&self.by_len).take(usize::from(below));
        let lengths = lengths.filter(|(_, map)| !map.is_empty()).collect::<Vec<_>>().into_iter().rev();
        lengths.filter_map(move |(len, map)| {
            let prefix = Ip4Prefix::new(addr, len).ok()?.normalized();
            map.get(&prefix.network().to_bits()).map(|slot| (prefix, slot))
        })
    }

    /// All entries in no order.
    pub fn entries(&self) -> impl Iterator<Item = (Ip4Prefix, &Slot)> {
        (0u8..).zip(&self.by_len).flat_map(|(len, map)| {
            map.iter().filter_map(move |(addr, slot)| {
                Some((Ip4Prefix::new(Ipv4Addr::from_bits(*addr), len).ok()?, slot))
            })
        })
    }

    /// How many entries there are of each length.
    pub fn lengths(&self) -> Vec<usize> {
        self.by_len.iter().map(HashMap::len).collect()
    }

    /// Bytes the entries take, without the trie.
    pub fn entry_bytes(&self) -> usize {
        // A hash table keeps one byte of its own per place.
        let place = size_of::<(u32, Slot)>() + 1;
        let boxed = |slot: &Slot| {
            slot.others
                .as_ref()
                .map_or(0, |o| size_of::<Vec<Contribution>>() + o.capacity() * size_of::<Contribution>())
        };
        self.by_len.iter().map(|map| map.capacity() * 8 / 7 * place).sum::<usize>()
            + self.entries().map(|(_, slot)| boxed(slot)).sum::<usize>()
    }
}
