//! `ip4-lookup`: the longest prefix that covers the destination.
//! ip4-input | features | anything made here -> **ip4-lookup** -> ip4-rewrite | ip4-local | ip4-arp | ip4-glean |
//! ip4-drop | ip4-punt | interface-rx-dpo-ip4
//!
//! Staged: over the whole frame the first step into the trie is taken and the second asked for, before any packet
//! goes on.

use shoal_adj::{Adj, AdjIndex, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::superpath::{Known, ResolvingNode, StagedLookup};
use shoal_graph::{Cx, Edge, StagedNode};
use shoal_infra::mtrie::{InFlight, Search};
use shoal_infra::mtrie4::Entry;
use shoal_infra::{Guard, Mtrie4};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_ip::forward;
use shoal_ip::node::RouteLookup;
use shoal_wire::Ip4Header;

use crate::{Headers, Ip4Family};

mod slow_path;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To a neighbour.
    #[node("ip4-rewrite")]
    Rewrite,
    /// To this router.
    #[node("ip4-local")]
    Local,
    /// To a neighbour whose address is not known.
    #[node("ip4-arp")]
    Arp,
    /// To an IPv6 neighbour whose address is not known (RFC 8950).
    Ask(Edge),
    /// To a host on a connected network.
    #[node("ip4-glean")]
    Glean,
    /// There is no way, and the sender may get an error.
    #[node("ip4-drop")]
    Drop,
    /// To the host.
    #[node("ip4-punt")]
    Punt,
    /// Received again, by another interface.
    #[node("interface-rx-dpo-ip4")]
    InterfaceRx,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 header is cut short
    TooShort,
    /// route leads through too many tables
    TooManyTables,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("fib {fib} dpo-idx {adj} flow hash: 0x{hash:08x}")]
#[line("{headers}")]
pub struct Trace {
    fib: u32,
    adj: u32,
    hash: u32,
    headers: Headers,
}

/// Bytes of a table that lookups wait for.
const FAR: usize = 512 << 10;

/// Looks up destinations.
pub struct Ip4Lookup {
    /// All forwarding tables.
    pub fib: FibTables,
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// All interfaces.
    pub interfaces: IfTable,
}

/// The destination and how far into the trie it has come.
#[derive(Clone, Copy, Default)]
pub struct Key {
    dst: u32,
    entry: Entry,
    fib: u32,
}

impl Ip4Lookup {
    /// The table a packet is looked up in.
    #[inline(always)]
    fn table(&self, pkt: &Packet<'_>) -> FibIndex {
        // A feature, a driver or the maker of the packet may have chosen another.
        pkt.meta().fib().unwrap_or_else(|| FibIndex(self.interfaces.ip4_table(pkt.rx())))
    }
}

impl RouteLookup for Ip4Lookup {
    type Family = Ip4Family;
    type Packet = Key;
    const TOO_SHORT: Error = Error::TooShort;

    #[inline(always)]
    fn known(&self, pkt: &Packet<'_>) -> Option<Key> {
        let ip = pkt.header::<Ip4Header>()?;
        Some(Key { dst: ip.dst_u32(), fib: self.table(pkt).0, ..Key::default() })
    }

    /// The hash is that of the table the packet came to first.
    fn trace(&self, key: Key, index: AdjIndex, pkt: &Packet<'_>, guard: Guard<'_>) -> Trace {
        let balance = self.adjacencies.get(index, guard).is_balance();
        let hash = if balance { self.fib.flow_hash(FibIndex(key.fib), pkt.data()) } else { 0 };
        Trace { fib: key.fib, adj: index.0, hash, headers: Headers::of(pkt) }
    }

    fn follow(
        &self,
        key: Key,
        index: AdjIndex,
        pkt: &mut Packet<'_>,
        (thread, guard): (usize, Guard<'_>),
    ) -> Result<Next, Error> {
        if self.adjacencies.get(index, guard).is_rewrite() {
            return Ok(Next::Rewrite);
        }
        self.rest(key, index, pkt, (thread, guard))
    }
}

impl StagedNode for Ip4Lookup {
    const NAME: &'static str = "ip4-lookup";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;
    type Key = Key;

    #[inline(always)]
    fn prepare(&self, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Key {
        let Some(ip) = pkt.header::<Ip4Header>() else { return Key::default() };
        let (dst, fib) = (ip.dst_u32(), self.table(pkt));
        let Some(trie) = self.fib.trie(fib, cx.guard()) else { return Key::default() };
        let entry = trie.stage1(dst);
        trie.prefetch(entry, dst);
        Key { dst, entry, fib: fib.0 }
    }

    #[inline(always)]
    fn packet(&self, key: Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let Key { dst, entry, fib } = key;
        let guard = cx.guard();
        let value = if entry.is_final() {
            entry.value()
        } else {
            self.fib.trie(FibIndex(fib), guard).map_or(0, |trie| trie.stage3(trie.stage2(entry, dst), dst))
        };
        let index = AdjIndex(value);
        pkt.meta_mut().adj = index.0;
        cx.trace(pkt, || self.trace(key, index, pkt, guard));
        if self.adjacencies.get(index, guard).is_rewrite() {
            return Ok(Next::Rewrite);
        }
        self.rest(key, index, pkt, (cx.thread(), guard))
    }
}

impl StagedLookup for Ip4Lookup {
    type Facts<'g> = (&'g Mtrie4, FibIndex);
    type Query = Search<u32>;
    type InFlight = InFlight;

    fn is_far((trie, _): Self::Facts<'_>) -> bool {
        // One that is in the first caches answers at once.
        trie.reach() > FAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Search<u32> {
        pkt.header_at::<Ip4Header>(offset).map_or_else(Search::default, |ip| Search::of(ip.dst_u32()))
    }

    #[inline(always)]
    fn begin((trie, _): Self::Facts<'_>, search: &mut Search<u32>) {
        trie.begin(search);
    }

    #[inline(always)]
    fn advance((trie, _): Self::Facts<'_>, all: &mut [Search<u32>]) -> InFlight {
        trie.advance(all)
    }

    #[inline(always)]
    fn finish((trie, _): Self::Facts<'_>, begun: InFlight, all: &mut [Search<u32>]) {
        trie.finish(begun, all);
    }

    #[inline(always)]
    fn look_up((trie, _): Self::Facts<'_>, search: &mut Search<u32>) {
        trie.look_up(search);
    }
}

impl ResolvingNode for Ip4Lookup {
    type Found<'g> = &'g Adj;

    fn facts<'g>(
        &'g self,
        interface: SwIfIndex,
        guard: Guard<'g>,
    ) -> Option<<Self as StagedLookup>::Facts<'g>> {
        let fib = FibIndex(self.interfaces.ip4_table(interface));
        Some((self.fib.trie(fib, guard)?, fib))
    }

    #[inline(always)]
    fn find<'g>(
        &'g self,
        (trie, fib): <Self as StagedLookup>::Facts<'g>,
        known: Known<'_, Search<u32>>,
        pkt: &mut Packet<'_>,
        guard: Guard<'g>,
    ) -> Option<&'g Adj> {
        let share = |adj: &Adj, pkt: &Packet<'_>| self.share(adj, fib, pkt);
        forward::find::<Ip4Header>(trie, known, pkt, &self.adjacencies, share, guard)
    }

    #[inline(always)]
    fn found<'g>(&'g self, search: &Search<u32>, guard: Guard<'g>) -> Option<&'g Adj> {
        forward::found(search, &self.adjacencies, guard)
    }

    #[inline(always)]
    fn takes(search: &Search<u32>, pkt: &mut Packet<'_>) -> bool {
        forward::takes::<Ip4Header>(search, pkt)
    }
}
