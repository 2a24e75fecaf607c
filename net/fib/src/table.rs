//! One table as the control plane sees it: entries by length and network, and the trie's writer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use shoal_adj::Family;
use shoal_infra::MtrieWriter;
use shoal_infra::budget::NoMemory;
use shoal_infra::mtrie::UpdateError;
use shoal_wire::IpPrefix;

use crate::address::{Bits, Keyed};
use crate::list::ListId;
use crate::map::Map;
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

    /// The list that decides where packets go. A path MTU does not, so that there may be none.
    pub fn route(&self) -> Option<ListId> {
        self.all().find(|c| c.source != Source::PathMtu).map(|c| c.list)
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
        if self.others.is_none() && self.best.source == new.source {
            return Some(std::mem::replace(&mut self.best, new).list);
        }
        let old = self.of(new.source);
        let mut all: Vec<Contribution> = self.all().filter(|c| c.source != new.source).collect();
        let at = all.partition_point(|c| c.source < new.source);
        all.insert(at, new);
        self.set(all);
        old
    }

    /// Takes a source's contribution out; `false` when that was the last.
    pub fn take(&mut self, source: Source) -> bool {
        if self.others.is_none() {
            return self.best.source != source;
        }
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

/// The entries of one family's table, and the trie packets read.
pub(crate) struct Routes<A> {
    pub writer: MtrieWriter<A>,
    /// Entries by prefix length, then network.
    by_len: Vec<Map<A>>,
}

impl<A: Bits> Routes<A> {
    pub fn new(writer: MtrieWriter<A>) -> Self {
        let keyed = Keyed::default();
        let map = |_| Map::new(keyed.clone());
        Routes { writer, by_len: (0..=A::FAMILY.max_len()).map(map).collect() }
    }

    fn map(&self, len: u8) -> Option<&Map<A>> {
        self.by_len.get(usize::from(len))
    }

    fn get(&self, prefix: &IpPrefix) -> Option<&Slot> {
        self.map(prefix.len())?.get(A::of(prefix.network())?)
    }

    fn get_mut(&mut self, prefix: &IpPrefix) -> Option<&mut Slot> {
        self.by_len.get_mut(usize::from(prefix.len()))?.get_mut(A::of(prefix.network())?)
    }

    /// Makes room for an entry, so that [`insert`](Self::insert) cannot fail.
    fn reserve(&mut self, prefix: &IpPrefix) -> Result<(), NoMemory> {
        match (self.by_len.get_mut(usize::from(prefix.len())), A::of(prefix.network())) {
            (Some(map), Some(addr)) => map.reserve(addr),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, prefix: &IpPrefix, slot: Slot) {
        if let (Some(map), Some(addr)) =
            (self.by_len.get_mut(usize::from(prefix.len())), A::of(prefix.network()))
        {
            map.insert(addr, slot);
        }
    }

    fn remove(&mut self, prefix: &IpPrefix) {
        if let (Some(map), Some(addr)) =
            (self.by_len.get_mut(usize::from(prefix.len())), A::of(prefix.network()))
        {
            map.remove(addr);
        }
    }

    fn covers(&self, addr: IpAddr, below: u8) -> impl Iterator<Item = (IpPrefix, &Slot)> + use<'_, A> {
        let addr = A::of(addr);
        let lengths = (0..below.min(A::FAMILY.max_len() + 1)).rev();
        let filled = lengths.filter_map(|len| Some((len, self.map(len).filter(|map| !map.is_empty())?)));
        filled.filter_map(move |(len, map)| {
            let network = addr?.network(len);
            let slot = map.get(network)?;
            Some((network.prefix(len)?, slot))
        })
    }

    fn entries(&self) -> impl Iterator<Item = (IpPrefix, &Slot)> {
        (0u8..)
            .zip(&self.by_len)
            .flat_map(|(len, map)| map.iter().filter_map(move |(addr, slot)| Some((addr.prefix(len)?, slot))))
    }

    fn hosts(&self) -> impl Iterator<Item = (IpPrefix, &Slot)> {
        let len = A::FAMILY.max_len();
        let all = self.map(len).into_iter().flat_map(Map::iter);
        all.filter_map(move |(addr, slot)| Some((addr.prefix(len)?, slot)))
    }

    fn write(&mut self, prefix: &IpPrefix, value: u32) -> Result<(), UpdateError> {
        let len = prefix.len();
        let addr = A::of(prefix.network()).ok_or(UpdateError::BadLength(len))?;
        if len == 0 && value == 0 {
            // A default route without a way is no leaf, so that a new table does not touch the whole trie.
            return self.writer.remove(addr, 0, None);
        }
        self.writer.insert(addr, len, value)
    }

    fn erase(&mut self, prefix: &IpPrefix, cover: Option<(u32, u8)>) -> Result<(), UpdateError> {
        let len = prefix.len();
        let addr = A::of(prefix.network()).ok_or(UpdateError::BadLength(len))?;
        self.writer.remove(addr, len, cover.filter(|cover| *cover != (0, 0)))
    }

    /// Bytes the entries take, without the trie.
    fn entry_bytes(&self) -> usize {
        let boxed = |slot: &Slot| {
            slot.others
                .as_ref()
                .map_or(0, |o| size_of::<Vec<Contribution>>() + o.capacity() * size_of::<Contribution>())
        };
        self.by_len.iter().map(Map::bytes).sum::<usize>()
            + self.entries().map(|(_, slot)| boxed(slot)).sum::<usize>()
    }
}

/// A table's entries, of its family.
pub(crate) enum Entries {
    Ip4(Routes<u32>),
    Ip6(Routes<u128>),
}

/// The same expression for both families.
macro_rules! either {
    ($self:expr, $routes:ident => $value:expr) => {
        match &$self.entries {
            Entries::Ip4($routes) => $value,
            Entries::Ip6($routes) => $value,
        }
    };
    (mut $self:expr, $routes:ident => $value:expr) => {
        match &mut $self.entries {
            Entries::Ip4($routes) => $value,
            Entries::Ip6($routes) => $value,
        }
    };
}

/// One table.
pub(crate) struct Table {
    pub id: u32,
    pub index: FibIndex,
    pub name: Option<String>,
    pub locks: BTreeMap<Source, usize>,
    pub entries: Entries,
}

impl Table {
    pub fn new(id: u32, index: FibIndex, name: Option<String>, entries: Entries) -> Table {
        Table { id, index, name, locks: BTreeMap::new(), entries }
    }

    pub fn family(&self) -> Family {
        match self.entries {
            Entries::Ip4(_) => Family::Ip4,
            Entries::Ip6(_) => Family::Ip6,
        }
    }

    pub fn get(&self, prefix: &IpPrefix) -> Option<&Slot> {
        either!(self, routes => routes.get(prefix))
    }

    pub fn get_mut(&mut self, prefix: &IpPrefix) -> Option<&mut Slot> {
        either!(mut self, routes => routes.get_mut(prefix))
    }

    /// Makes room for an entry, so that [`insert`](Self::insert) cannot fail.
    pub fn reserve(&mut self, prefix: &IpPrefix) -> Result<(), NoMemory> {
        either!(mut self, routes => routes.reserve(prefix))
    }

    pub fn insert(&mut self, prefix: &IpPrefix, slot: Slot) {
        either!(mut self, routes => routes.insert(prefix, slot));
    }

    pub fn remove(&mut self, prefix: &IpPrefix) {
        either!(mut self, routes => routes.remove(prefix));
    }

    /// The longest entry that covers an address and is shorter than `below` bits.
    pub fn longest(&self, addr: IpAddr, below: u8) -> Option<(IpPrefix, &Slot)> {
        either!(self, routes => routes.covers(addr, below).next())
    }

    /// All entries that cover an address and are shorter than `below` bits, the longest first.
    pub fn covers(&self, addr: IpAddr, below: u8) -> Vec<(IpPrefix, &Slot)> {
        either!(self, routes => routes.covers(addr, below).collect())
    }

    /// Does something with each entry, in no order.
    pub fn each<'a>(&'a self, mut act: impl FnMut(IpPrefix, &'a Slot)) {
        either!(self, routes => routes.entries().for_each(|(prefix, slot)| act(prefix, slot)));
    }

    /// Does something with each entry of one host, in no order.
    pub fn each_host<'a>(&'a self, mut act: impl FnMut(IpPrefix, &'a Slot)) {
        either!(self, routes => routes.hosts().for_each(|(prefix, slot)| act(prefix, slot)));
    }

    /// Up to `most` contributions that are wanted, in no order.
    pub fn contributions(
        &self,
        wanted: impl Fn(&Contribution) -> bool,
        most: usize,
    ) -> Vec<(IpPrefix, Source)> {
        let all = |(prefix, slot): (IpPrefix, &Slot)| -> Vec<(IpPrefix, Source)> {
            slot.all().filter(&wanted).map(|c| (prefix, c.source)).collect()
        };
        either!(self, routes => routes.entries().flat_map(all).take(most).collect())
    }

    /// Makes an entry's place in the trie lead to an adjacency.
    pub fn write(&mut self, prefix: &IpPrefix, value: u32) -> Result<(), UpdateError> {
        either!(mut self, routes => routes.write(prefix, value))
    }

    /// Gives an entry's place in the trie to its cover, told by adjacency and length.
    pub fn erase(&mut self, prefix: &IpPrefix, cover: Option<(u32, u8)>) -> Result<(), UpdateError> {
        either!(mut self, routes => routes.erase(prefix, cover))
    }

    /// How many entries there are of each length.
    pub fn lengths(&self) -> Vec<usize> {
        either!(self, routes => routes.by_len.iter().map(Map::len).collect())
    }

    /// Bytes the entries take, without the trie.
    pub fn entry_bytes(&self) -> usize {
        either!(self, routes => routes.entry_bytes())
    }

    pub fn trie_bytes(&self) -> usize {
        either!(self, routes => routes.writer.bytes())
    }

    pub fn plies(&self) -> usize {
        either!(self, routes => routes.writer.plies())
    }
}
