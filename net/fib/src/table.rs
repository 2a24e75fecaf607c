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
use crate::slot::{Contribution, Packed, Slot};
use crate::{FibIndex, Source};

/// The entries of one family's table, and the trie packets read.
pub(crate) struct Routes<A: Bits> {
    pub writer: MtrieWriter<A>,
    /// Entries by prefix length, then network: what [`Packed`] is.
    by_len: Vec<Map<A>>,
    /// By length and network: all contributions but the best, where there are several.
    others: BTreeMap<(u8, A), Vec<Contribution>>,
}

impl<A: Bits> Routes<A> {
    pub fn new(writer: MtrieWriter<A>) -> Self {
        let keyed = Keyed::default();
        let map = |_| Map::new(keyed.clone());
        Routes { writer, by_len: (0..=A::FAMILY.max_len()).map(map).collect(), others: BTreeMap::new() }
    }

    pub fn map(&self, len: u8) -> Option<&Map<A>> {
        self.by_len.get(usize::from(len))
    }

    /// The entries of each length, from 0 on.
    pub fn lengths(&self) -> impl Iterator<Item = &Map<A>> {
        self.by_len.iter()
    }

    fn slot(&self, len: u8, addr: A) -> Option<Slot<'_>> {
        self.map(len)?.get(addr).map(|word| self.unpack(len, addr, word))
    }

    pub fn unpack(&self, len: u8, addr: A, word: u32) -> Slot<'_> {
        let packed = Packed::from_word(word);
        let others = if packed.has_others() { self.others.get(&(len, addr)) } else { None };
        Slot::new(packed, others.map_or(&[], Vec::as_slice))
    }

    fn get(&self, prefix: &IpPrefix) -> Option<Slot<'_>> {
        self.slot(prefix.len(), A::of(prefix.network())?)
    }

    fn prefetch(&self, prefix: &IpPrefix) {
        if let (Some(map), Some(addr)) = (self.map(prefix.len()), A::of(prefix.network())) {
            map.prefetch(addr);
        }
    }

    /// Makes room for an entry, so that [`put`](Self::put) cannot fail.
    fn reserve(&mut self, prefix: &IpPrefix) -> Result<(), NoMemory> {
        match (self.by_len.get_mut(usize::from(prefix.len())), A::of(prefix.network())) {
            (Some(map), Some(addr)) => map.reserve(addr),
            _ => Ok(()),
        }
    }

    /// Puts a contribution in its place; gives back what the source contributed before.
    fn put(&mut self, prefix: &IpPrefix, new: Contribution) -> Option<ListId> {
        let (len, addr) = (prefix.len(), A::of(prefix.network())?);
        let Some(slot) = self.slot(len, addr) else {
            self.set(len, addr, &[new], false);
            return None;
        };
        let (old, marked) = (slot.of(new.source), slot.is_marked() && new.source != Source::Api);
        if slot.is_alone(new.source) {
            self.set(len, addr, &[new], marked);
            return old;
        }
        let mut all: Vec<Contribution> = slot.all().filter(|c| c.source != new.source).collect();
        let at = all.partition_point(|c| c.source < new.source);
        all.insert(at, new);
        self.set(len, addr, &all, marked);
        old
    }

    /// The same of an entry that is not there yet.
    fn put_first(&mut self, prefix: &IpPrefix, new: Contribution) -> Option<ListId> {
        self.set(prefix.len(), A::of(prefix.network())?, &[new], false);
        None
    }

    /// Takes a source's contribution out: what it was, who decided before, and who decides now.
    fn take(&mut self, prefix: &IpPrefix, source: Source) -> Option<Taken> {
        let (len, addr) = (prefix.len(), A::of(prefix.network())?);
        let slot = self.slot(len, addr)?;
        let (list, before) = (slot.of(source)?, slot.best());
        let marked = slot.is_marked() && source != Source::Api;
        if slot.is_alone(source) {
            self.set(len, addr, &[], false);
            return Some(Taken { list, before, after: None });
        }
        let left: Vec<Contribution> = slot.all().filter(|c| c.source != source).collect();
        self.set(len, addr, &left, marked);
        Some(Taken { list, before, after: left.first().copied() })
    }

    /// These contributions are all there are to an entry, best first.
    fn set(&mut self, len: u8, addr: A, all: &[Contribution], marked: bool) {
        let Some(map) = self.by_len.get_mut(usize::from(len)) else { return };
        match all {
            [] => map.remove(addr),
            [best, others @ ..] => {
                let packed = Packed::new(*best, !others.is_empty());
                map.put(addr, if marked { packed.marked() } else { packed }.word());
            }
        }
        if let [_, others @ ..] = all
            && !others.is_empty()
        {
            self.others.insert((len, addr), others.to_vec());
        } else if !self.others.is_empty() {
            self.others.remove(&(len, addr));
        }
    }

    fn covers(&self, addr: IpAddr, below: u8) -> impl Iterator<Item = (IpPrefix, Slot<'_>)> + use<'_, A> {
        let addr = A::of(addr);
        let lengths = (0..below.min(A::FAMILY.max_len() + 1)).rev();
        let filled = lengths.filter_map(|len| Some((len, self.map(len).filter(|map| !map.is_empty())?)));
        filled.filter_map(move |(len, map)| {
            let network = addr?.network(len);
            let slot = self.unpack(len, network, map.get(network)?);
            Some((network.prefix(len)?, slot))
        })
    }

    fn prefetch_covers(&self, addr: IpAddr, below: u8) {
        let Some(addr) = A::of(addr) else { return };
        for (len, map) in (0..below).zip(&self.by_len).filter(|(_, map)| !map.is_empty()) {
            map.prefetch(addr.network(len));
        }
    }

    fn entries(&self) -> impl Iterator<Item = (IpPrefix, Slot<'_>)> {
        let of_map = move |(len, map)| {
            let entry = move |(addr, word): (A, u32)| Some((addr.prefix(len)?, self.unpack(len, addr, word)));
            Map::iter(map).filter_map(entry)
        };
        (0u8..).zip(&self.by_len).flat_map(of_map)
    }

    /// Some entries from a place on, and the place where to go on; `None` behind the last one.
    fn some(&self, from: Place, mut act: impl FnMut(IpPrefix, Slot<'_>)) -> Option<Place> {
        let Place { len, hash } = from;
        let next = self.map(len)?.some(hash, |addr, word| {
            if let Some(prefix) = addr.prefix(len) {
                act(prefix, self.unpack(len, addr, word));
            }
        });
        if let Some(hash) = next {
            return Some(Place { len, hash });
        }
        let filled = |len: &u8| self.map(*len).is_some_and(|map| !map.is_empty());
        (len + 1..=A::FAMILY.max_len()).find(filled).map(|len| Place { len, hash: 0 })
    }

    /// Marks an entry to which the API contributes.
    fn mark(&mut self, prefix: &IpPrefix) {
        let (len, addr) = (prefix.len(), A::of(prefix.network()));
        if let Some(map) = self.by_len.get_mut(usize::from(len))
            && let Some(addr) = addr
            && let Some(word) = map.get(addr)
        {
            map.put(addr, Packed::from_word(word).marked().word());
        }
    }

    fn hosts(&self) -> impl Iterator<Item = (IpPrefix, Slot<'_>)> {
        let len = A::FAMILY.max_len();
        let all = self.map(len).into_iter().flat_map(Map::iter);
        all.filter_map(move |(addr, word)| Some((addr.prefix(len)?, self.unpack(len, addr, word))))
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
        let of_others = |all: &Vec<Contribution>| {
            size_of::<((u8, A), Vec<Contribution>)>() + all.capacity() * size_of::<Contribution>()
        };
        self.by_len.iter().map(Map::bytes).sum::<usize>() + self.others.values().map(of_others).sum::<usize>()
    }
}

/// What a source contributed that contributes nothing any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub list: ListId,
    /// Who decided.
    pub before: Contribution,
    /// Who decides now, if anybody is left.
    pub after: Option<Contribution>,
}

/// How far a walk through a table's entries has come: shorter prefixes first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    len: u8,
    hash: u64,
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
    /// Its maker does not want it any more; it goes with its last user.
    pub leaving: bool,
    /// It was made for a feature that needed it, and no operator or client has asked for it.
    pub lent: bool,
}

impl Table {
    pub fn new(id: u32, index: FibIndex, name: Option<String>, entries: Entries) -> Table {
        Table { id, index, name, locks: BTreeMap::new(), entries, leaving: false, lent: false }
    }

    pub fn family(&self) -> Family {
        match self.entries {
            Entries::Ip4(_) => Family::Ip4,
            Entries::Ip6(_) => Family::Ip6,
        }
    }

    /// Its name, by default one that has its id.
    pub fn shown_name(&self) -> String {
        let own = self.name.clone();
        own.unwrap_or_else(|| format!("{}-VRF:{}", self.family().long_name(), self.id))
    }

    /// It stays from now on, whether or not a feature uses it. Tells whether it was there for a feature only.
    pub fn take_over(&mut self) -> bool {
        let lent = std::mem::take(&mut self.lent);
        self.leaving &= !lent;
        lent
    }

    /// Whether it has no entries but those of every table.
    pub fn is_empty(&self) -> bool {
        self.contributions(|c| ![Source::Special, Source::DefaultRoute].contains(&c.source), 1).is_empty()
    }

    pub fn get(&self, prefix: &IpPrefix) -> Option<Slot<'_>> {
        either!(self, routes => routes.get(prefix))
    }

    /// Fetches the line where an entry is or would be.
    pub fn prefetch(&self, prefix: &IpPrefix) {
        either!(self, routes => routes.prefetch(prefix));
    }

    /// Makes room for an entry, so that [`put`](Self::put) cannot fail.
    pub fn reserve(&mut self, prefix: &IpPrefix) -> Result<(), NoMemory> {
        either!(mut self, routes => routes.reserve(prefix))
    }

    /// Puts a contribution in its place, for which there is room; gives back what the source contributed before.
    pub fn put(&mut self, prefix: &IpPrefix, new: Contribution) -> Option<ListId> {
        either!(mut self, routes => routes.put(prefix, new))
    }

    /// The same of an entry that is not there yet; `None`.
    pub fn put_first(&mut self, prefix: &IpPrefix, new: Contribution) -> Option<ListId> {
        either!(mut self, routes => routes.put_first(prefix, new))
    }

    /// Takes a source's contribution out, if there is one; the last one takes the entry with it.
    pub fn take(&mut self, prefix: &IpPrefix, source: Source) -> Option<Taken> {
        either!(mut self, routes => routes.take(prefix, source))
    }

    /// The longest entry that covers an address and is shorter than `below` bits.
    pub fn longest(&self, addr: IpAddr, below: u8) -> Option<(IpPrefix, Slot<'_>)> {
        either!(self, routes => routes.covers(addr, below).next())
    }

    /// The same, where it is likely to be far shorter: all places are fetched at once.
    pub fn cover(&self, prefix: &IpPrefix) -> Option<(IpPrefix, Slot<'_>)> {
        either!(self, routes => routes.prefetch_covers(prefix.network(), prefix.len()));
        self.longest(prefix.network(), prefix.len())
    }

    /// All entries that cover an address and are shorter than `below` bits, the longest first.
    pub fn covers(&self, addr: IpAddr, below: u8) -> Vec<(IpPrefix, Slot<'_>)> {
        either!(self, routes => routes.covers(addr, below).collect())
    }

    /// Does something with each entry, in no order.
    pub fn each<'a>(&'a self, mut act: impl FnMut(IpPrefix, Slot<'a>)) {
        either!(self, routes => routes.entries().for_each(|(prefix, slot)| act(prefix, slot)));
    }

    /// Does something with some entries from a place on; tells where to go on, `None` behind the last one. Entries that
    /// stay while a walk lasts are met once, whatever else changes.
    pub fn some(&self, from: Place, act: impl FnMut(IpPrefix, Slot<'_>)) -> Option<Place> {
        either!(self, routes => routes.some(from, act))
    }

    /// Does something with the entries at the next address from `from` on at which there are any, in order of length;
    /// tells the address where to go on, `None` behind the last one. There may be none yet after some steps.
    pub fn in_order(&self, from: u128, act: impl FnMut(IpPrefix, Slot<'_>)) -> Option<u128> {
        either!(self, routes => routes.in_order(from, act))
    }

    /// Marks an entry to which the API contributes, until it does so again.
    pub fn mark(&mut self, prefix: &IpPrefix) {
        either!(mut self, routes => routes.mark(prefix));
    }

    /// Does something with each entry of one host, in no order.
    pub fn each_host<'a>(&'a self, mut act: impl FnMut(IpPrefix, Slot<'a>)) {
        either!(self, routes => routes.hosts().for_each(|(prefix, slot)| act(prefix, slot)));
    }

    /// Up to `most` contributions that are wanted, in no order.
    pub fn contributions(
        &self,
        wanted: impl Fn(&Contribution) -> bool,
        most: usize,
    ) -> Vec<(IpPrefix, Source)> {
        let all = |(prefix, slot): (IpPrefix, Slot<'_>)| -> Vec<(IpPrefix, Source)> {
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
