//! What packets read: one trie per table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_adj::{Adj, AdjIndex, AdjKind, AdjTable, Family, Reaches};
use shoal_buffer::{FibIndex, SwIfIndex};
use shoal_infra::{Guard, Mtrie4, Mtrie6, Published, StableArena};

use crate::FlowFields;

/// Most tables of a family: as many as a packet can name.
pub(crate) const MOST_TABLES: usize = FibIndex::MOST;

pub(crate) type Others<T> = Vec<Option<Arc<T>>>;

/// One family's tables.
#[derive(Clone)]
pub(crate) struct Tries<T: Send + Sync + 'static> {
    /// Most packets are looked up here, so it is reached without following the list.
    pub default: T,
    /// Tables by index; place 0 is empty.
    pub others: Arc<Published<Others<T>>>,
    /// By table: [`FlowFields`].
    pub fields: StableArena<AtomicU32>,
}

impl<T: Send + Sync + 'static> Tries<T> {
    #[inline(always)]
    fn get<'g>(&'g self, fib: FibIndex, guard: Guard<'g>) -> Option<&'g T> {
        if fib == FibIndex::DEFAULT { Some(&self.default) } else { self.other(fib, guard) }
    }

    fn other<'g>(&'g self, fib: FibIndex, guard: Guard<'g>) -> Option<&'g T> {
        self.others.load(guard).get(fib.0 as usize)?.as_deref()
    }

    #[inline(always)]
    fn fields(&self, fib: FibIndex) -> FlowFields {
        FlowFields::from_bits(self.fields.get(fib.0 as usize).map_or(0, |f| f.load(Ordering::Relaxed)))
    }
}

/// Tables an address is looked up in one after the other.
pub(crate) const TABLES_IN_A_ROW: usize = 9;

fn through_tables(first: FibIndex, ask: impl Fn(FibIndex) -> Reaches) -> bool {
    let mut fib = first;
    for _ in 0..TABLES_IN_A_ROW {
        match ask(fib) {
            Reaches::Yes => return true,
            Reaches::No => return false,
            Reaches::Elsewhere(table) => fib = FibIndex(table),
        }
    }
    false
}

/// Leads a packet from what was found in its table to where the route ends: past its counter and through balances and
/// other tables. `None` when those are too many. `share` is the member of a balance that the packet takes, `find` looks
/// it up in another table.
#[inline(always)]
pub fn follow_route<'g>(
    adjacencies: &'g AdjTable,
    (fib, found): (FibIndex, AdjIndex),
    bytes: usize,
    (thread, guard): (usize, Guard<'g>),
    share: impl Fn(&Adj, FibIndex) -> AdjIndex,
    find: impl Fn(FibIndex, LookupAddress) -> AdjIndex,
) -> Option<(AdjIndex, &'g Adj)> {
    let (mut fib, mut index) = (fib, found);
    for _ in 0..TABLES_IN_A_ROW {
        let mut adj = adjacencies.get(index, guard);
        if adj.kind() == AdjKind::Count {
            index = adjacencies.count_route(index, adj, thread, bytes);
            adj = adjacencies.get(index, guard);
        }
        if adj.is_balance() {
            index = share(adj, fib);
            adj = adjacencies.get(index, guard);
        }
        if adj.kind() != AdjKind::Lookup {
            return Some((index, adj));
        }
        fib = FibIndex(adj.table());
        index = find(fib, if adj.by_source() { LookupAddress::Source } else { LookupAddress::Destination });
    }
    None
}

/// Which address of a packet is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupAddress {
    /// Where it goes.
    Destination,
    /// Where it comes from.
    Source,
}

/// All tables as packets see them. Clones are the same tables.
#[derive(Clone)]
pub struct FibTables {
    pub(crate) ip4: Tries<Mtrie4>,
    pub(crate) ip6: Tries<Mtrie6>,
    pub(crate) seed: Arc<AtomicU64>,
}

impl FibTables {
    /// The adjacency of the longest prefix that covers an IPv4 address (host order); [`AdjIndex::NONE`] when there is
    /// no route or no such table.
    #[inline(always)]
    pub fn lookup(&self, fib: FibIndex, addr: u32, guard: Guard<'_>) -> AdjIndex {
        match self.trie(fib, guard) {
            Some(trie) => AdjIndex(trie.lookup(addr)),
            None => AdjIndex::NONE,
        }
    }

    /// The same for an IPv6 address.
    #[inline(always)]
    pub fn lookup_ip6(&self, fib: FibIndex, addr: u128, guard: Guard<'_>) -> AdjIndex {
        match self.trie_ip6(fib, guard) {
            Some(trie) => AdjIndex(trie.lookup(addr)),
            None => AdjIndex::NONE,
        }
    }

    /// Whether packets to an IPv4 address (host order) leave by an interface; `None`: by any, so that it is enough if
    /// there is a way to the address that leads out of this router.
    pub fn reaches(
        &self,
        (fib, addr): (FibIndex, u32),
        by: Option<SwIfIndex>,
        adjacencies: &AdjTable,
        guard: Guard<'_>,
    ) -> bool {
        through_tables(fib, |fib| adjacencies.reaches(self.lookup(fib, addr, guard), by, guard))
    }

    /// The same for an IPv6 address.
    pub fn reaches_ip6(
        &self,
        (fib, addr): (FibIndex, u128),
        by: Option<SwIfIndex>,
        adjacencies: &AdjTable,
        guard: Guard<'_>,
    ) -> bool {
        through_tables(fib, |fib| adjacencies.reaches(self.lookup_ip6(fib, addr, guard), by, guard))
    }

    /// An IPv4 table's trie, for staged lookups: its first stage over a whole frame, then the next one. What the last
    /// stage finds is an adjacency's index. `None` when there is no such table.
    #[inline(always)]
    pub fn trie<'g>(&'g self, fib: FibIndex, guard: Guard<'g>) -> Option<&'g Mtrie4> {
        self.ip4.get(fib, guard)
    }

    /// The same of an IPv6 table.
    #[inline(always)]
    pub fn trie_ip6<'g>(&'g self, fib: FibIndex, guard: Guard<'g>) -> Option<&'g Mtrie6> {
        self.ip6.get(fib, guard)
    }

    /// Which fields choose among several paths in a table.
    #[inline(always)]
    pub fn flow_fields(&self, family: Family, fib: FibIndex) -> FlowFields {
        match family {
            Family::Ip4 => self.ip4.fields(fib),
            Family::Ip6 => self.ip6.fields(fib),
        }
    }

    /// The hash that chooses among several paths for the IPv4 packet that starts at `packet`.
    #[inline]
    pub fn flow_hash(&self, fib: FibIndex, packet: &[u8]) -> u32 {
        self.ip4.fields(fib).hash_ip4(packet, self.seed.load(Ordering::Relaxed))
    }

    /// The same for an IPv6 packet.
    #[inline]
    pub fn flow_hash_ip6(&self, fib: FibIndex, packet: &[u8]) -> u32 {
        self.ip6.fields(fib).hash_ip6(packet, self.seed.load(Ordering::Relaxed))
    }
}
