//! What packets read: entries by source and group, and what becomes of a packet that finds one.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use shoal_adj::{AdjIndex, Family};
use shoal_buffer::SwIfIndex;
use shoal_infra::{Guard, Published};

use crate::flags::{EntryFlags, ItfFlags};

/// Entries of one chunk, which is made when the first of them is needed.
const CHUNK: usize = 256;
/// Chunks.
const CHUNKS: usize = 512;
/// Most entries of a family.
pub const MOST_ENTRIES: usize = CHUNK * CHUNKS;
/// Changing an entry's key copies all of its shard.
const SHARDS: usize = 256;

/// The table whose entries hold in every table: what all routers do.
pub(crate) const EVERY_TABLE: u32 = u32::MAX;

/// Which packets an entry is for. Addresses are numbers in host order, those of IPv4 in the low 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub table: u32,
    pub group: u128,
    /// Bits of the group that count.
    pub len: u8,
    /// 0: any source.
    pub source: u128,
}

/// One interface of an entry.
#[derive(Debug)]
pub(crate) struct Itf {
    pub interface: SwIfIndex,
    pub flags: ItfFlags,
    /// A packet was signalled.
    pub signalled: AtomicBool,
}

/// One entry as packets see it. It is replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct EntryData {
    pub flags: EntryFlags,
    /// By index.
    pub itfs: Box<[Itf]>,
    /// Whether this router listens.
    pub local: bool,
    /// Where packets are sent.
    pub out: Box<[AdjIndex]>,
}

impl EntryData {
    /// The interface's part.
    #[inline]
    pub fn itf(&self, interface: SwIfIndex) -> Option<&Itf> {
        let at = self.itfs.binary_search_by_key(&interface, |itf| itf.interface).ok()?;
        self.itfs.get(at)
    }

    /// RFC 5110 calls it the RPF check: whether packets from an interface are taken.
    #[inline]
    pub fn accepts(&self, itf: Option<&Itf>) -> bool {
        self.flags.has(EntryFlags::ACCEPT_ALL) || itf.is_some_and(|itf| itf.flags.has(ItfFlags::ACCEPT))
    }

    /// Notes a packet that somebody wants to hear of; tells whether it is the first one.
    #[inline]
    pub fn signal(&self, itf: &Itf) -> bool {
        let wanted = self.flags.has(EntryFlags::SIGNAL) != itf.flags.has(ItfFlags::NEGATE_SIGNAL);
        wanted && !itf.signalled.load(Ordering::Relaxed) && !itf.signalled.swap(true, Ordering::Relaxed)
    }
}

type Shard = HashMap<Key, u32>;
type Chunk = Box<[Published<EntryData>]>;

/// The lengths of groups that are in use, longest first, and whether any entry has a source.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Lengths {
    pub by_source: bool,
    pub groups: Vec<u8>,
}

struct Inner {
    family: Family,
    shards: Box<[Published<Shard>]>,
    hasher: RandomState,
    lengths: Published<Lengths>,
    chunks: Box<[OnceLock<Chunk>]>,
    none: Published<EntryData>,
}

/// All entries of a family. Clones are the same table.
#[derive(Clone)]
pub struct MfibTable(Arc<Inner>);

impl MfibTable {
    pub(crate) fn new(family: Family) -> Self {
        MfibTable(Arc::new(Inner {
            family,
            shards: (0..SHARDS).map(|_| Published::new(Shard::new())).collect(),
            hasher: RandomState::new(),
            lengths: Published::new(Lengths::default()),
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            none: Published::new(EntryData::default()),
        }))
    }

    /// An address of which only the first bits count.
    pub(crate) fn masked(&self, address: u128, len: u8) -> u128 {
        let host_bits = u32::from(self.0.family.max_len().saturating_sub(len));
        address.checked_shr(host_bits).and_then(|n| n.checked_shl(host_bits)).unwrap_or(0)
    }

    fn shard(&self, key: &Key) -> Option<&Published<Shard>> {
        self.0.shards.get(self.0.hasher.hash_one(key) as usize % SHARDS)
    }

    fn get(&self, key: Key, guard: Guard<'_>) -> Option<u32> {
        self.shard(&key)?.load(guard).get(&key).copied()
    }

    /// The entry for a packet: the one for its source and group, then the one of the longest group.
    #[inline]
    pub fn find(&self, table: u32, source: u128, group: u128, guard: Guard<'_>) -> Option<u32> {
        let lengths = self.0.lengths.load(guard);
        let most = self.0.family.max_len();
        if lengths.by_source
            && let Some(found) = self.get(Key { table, group, len: most, source }, guard)
        {
            return Some(found);
        }
        let of = |table: u32| {
            lengths.groups.iter().find_map(|len| {
                self.get(Key { table, group: self.masked(group, *len), len: *len, source: 0 }, guard)
            })
        };
        // Which groups of a link this router is in on which interface is known to ip6-lookup, for IPv6.
        of(table).or_else(|| if self.0.family == Family::Ip4 { of(EVERY_TABLE) } else { None })
    }

    fn slot(&self, id: u32) -> Option<&Published<EntryData>> {
        let chunk = self.0.chunks.get(id as usize / CHUNK)?.get()?;
        chunk.get(id as usize % CHUNK)
    }

    /// One entry; one without interfaces when there is none of this number.
    #[inline]
    pub(crate) fn entry<'g>(&self, id: u32, guard: Guard<'g>) -> &'g EntryData {
        self.slot(id).unwrap_or(&self.0.none).load(guard)
    }

    /// The same for the control plane.
    pub(crate) fn entry_now(&self, id: u32) -> Arc<EntryData> {
        self.slot(id).unwrap_or(&self.0.none).get()
    }

    pub(crate) fn set_entry(&self, id: u32, data: EntryData) {
        let Some(chunk) = self.0.chunks.get(id as usize / CHUNK) else { return };
        let fresh = || (0..CHUNK).map(|_| Published::new(EntryData::default())).collect();
        if let Some(slot) = chunk.get_or_init(fresh).get(id as usize % CHUNK) {
            slot.replace(data);
        }
    }

    pub(crate) fn set_key(&self, key: Key, id: Option<u32>) {
        let Some(shard) = self.shard(&key) else { return };
        let mut copy = (*shard.get()).clone();
        match id {
            Some(id) => copy.insert(key, id),
            None => copy.remove(&key),
        };
        shard.replace(copy);
    }

    pub(crate) fn set_lengths(&self, lengths: Lengths) {
        if *self.0.lengths.get() != lengths {
            self.0.lengths.replace(lengths);
        }
    }
}
