//! `ip6-lookup`: the longest prefix that covers the destination.
//! ip6-input | features | anything made here -> **ip6-lookup** -> ip6-rewrite | ip6-local | ip6-drop | ip6-punt |
//! interface-rx-dpo-ip6 | the node that asks for neighbours
//!
//! Staged: a group of packets takes each step into the trie together, so that their misses overlap.

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::{Cx, Edge, GROUP, StagedNode};
use shoal_infra::Guard;
use shoal_infra::mtrie::Search;
use shoal_interface::IfTable;
use shoal_ip::node::RouteLookup;
use shoal_wire::Ip6Header;

use crate::{Headers, Ip6Family, Ip6LinkTable, edges::Ip6Edges};

mod ahead;
mod slow_path;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To a neighbour.
    #[node("ip6-rewrite")]
    Rewrite,
    /// To this router.
    #[node("ip6-local")]
    Local,
    /// There is no way, and the sender may get an error.
    #[node("ip6-drop")]
    Drop,
    /// To the host.
    #[node("ip6-punt")]
    Punt,
    /// Received again, by another interface.
    #[node("interface-rx-dpo-ip6")]
    InterfaceRx,
    /// To the node that asks for neighbours.
    Ask(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip6 header is cut short
    TooShort,
    /// route leads through too many tables
    TooManyTables,
    /// link-local address of another node
    LinkLocal,
    /// multicast group this router has not joined
    Group,
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

/// Looks up destinations.
pub struct Ip6Lookup {
    /// All forwarding tables.
    pub fib: FibTables,
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// All interfaces.
    pub interfaces: IfTable,
    /// What is known by interface: link-local addresses and groups.
    pub links: Ip6LinkTable,
    /// Where packets to unknown neighbours go.
    pub edges: Ip6Edges,
}

/// The destination, the table, and what was found there.
#[derive(Clone, Copy, Default)]
pub struct Key {
    dst: u128,
    fib: u32,
    found: u32,
}

impl Ip6Lookup {
    /// The table a packet is looked up in.
    #[inline(always)]
    fn table(&self, pkt: &Packet<'_>) -> FibIndex {
        // A feature, a driver or the maker of the packet may have chosen another.
        pkt.meta().fib().unwrap_or_else(|| FibIndex(self.interfaces.ip6_table(pkt.rx())))
    }
}

impl RouteLookup for Ip6Lookup {
    type Family = Ip6Family;
    type Packet = Key;
    const TOO_SHORT: Error = Error::TooShort;

    #[inline(always)]
    fn known(&self, pkt: &Packet<'_>) -> Option<Key> {
        let ip = pkt.header::<Ip6Header>()?;
        Some(Key { dst: ip.dst_u128(), fib: self.table(pkt).0, ..Key::default() })
    }

    /// The hash is that of the table the packet came to first.
    fn trace(&self, key: Key, index: AdjIndex, pkt: &Packet<'_>, guard: Guard<'_>) -> Trace {
        let balance = self.adjacencies.get(index, guard).is_balance();
        let hash = if balance { self.fib.flow_hash_ip6(FibIndex(key.fib), pkt.data()) } else { 0 };
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

impl StagedNode for Ip6Lookup {
    const NAME: &'static str = "ip6-lookup";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;
    type Key = Key;

    #[inline(always)]
    fn prepare(&self, pkt: &Packet<'_>, _: &mut Cx<'_, Self>) -> Key {
        self.known(pkt).unwrap_or_default()
    }

    #[inline(always)]
    fn seek(&self, keys: &mut [Key], cx: &mut Cx<'_, Self>) {
        let guard = cx.guard();
        let mut rest = keys;
        while let [first, ..] = rest {
            let fib = first.fib;
            let same = rest.iter().take_while(|key| key.fib == fib).count();
            let (run, others) = rest.split_at_mut(same);
            self.seek_in(FibIndex(fib), run, guard);
            rest = others;
        }
    }

    #[inline(always)]
    fn packet(&self, key: Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let guard = cx.guard();
        let index = AdjIndex(key.found);
        pkt.meta_mut().adj = index.0;
        cx.trace(pkt, || self.trace(key, index, pkt, guard));
        if self.adjacencies.get(index, guard).is_rewrite() {
            return Ok(Next::Rewrite);
        }
        if pkt.header::<Ip6Header>().is_none() {
            return Err(Error::TooShort);
        }
        self.rest(key, index, pkt, (cx.thread(), guard))
    }
}

impl Ip6Lookup {
    /// Looks up to [`GROUP`] destinations up in one table.
    #[inline(always)]
    fn seek_in(&self, fib: FibIndex, keys: &mut [Key], guard: Guard<'_>) {
        let Some(trie) = self.fib.trie_ip6(fib, guard) else { return };
        let mut searches = [Search::default(); GROUP];
        let searches = searches.get_mut(..keys.len()).unwrap_or_default();
        for (search, key) in searches.iter_mut().zip(&*keys) {
            *search = Search::of(key.dst);
        }
        trie.seek(searches);
        for (search, key) in searches.iter().zip(keys) {
            key.found = search.value();
            self.adjacencies.prefetch(AdjIndex(key.found));
        }
    }
}
