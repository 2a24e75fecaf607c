//! `ip6-lookup`: the longest prefix that covers the destination.
//! ip6-input | features | anything made here -> **ip6-lookup** -> ip6-rewrite | ip6-local | ip6-drop | ip6-punt |
//! interface-rx-dpo-ip6 |
//! whoever asks for neighbours
//!
//! Staged: each stage takes one step into the trie over the whole frame and asks for the next, so that up to a /48
//! the misses of all packets overlap.

use shoal_adj::{Adj, AdjIndex, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::superpath::Finds;
use shoal_graph::{Cx, Edge, StagedNode};
use shoal_infra::mtrie::{Address, Entry};
use shoal_infra::{Guard, Mtrie6};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_wire::Ip6Header;

use crate::{Headers, Ip6LinkTable, edges::Ip6Edges};

mod aside;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To a neighbour.
    #[node("ip6-rewrite")]
    Rewrite,
    /// To this router.
    #[node("ip6-local")]
    Local,
    /// There is no way, and the sender may be told.
    #[node("ip6-drop")]
    Drop,
    /// To the host.
    #[node("ip6-punt")]
    Punt,
    /// Received again, by another interface.
    #[node("interface-rx-dpo-ip6")]
    InterfaceRx,
    /// To whoever finds out where a neighbour is.
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

/// Levels of the trie the stages go down: to a /48.
const STAGES: u8 = 6;

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
    /// Whom to send packets to whose neighbour is not known.
    pub edges: Ip6Edges,
}

/// The destination and how far into the trie it has come.
#[derive(Clone, Copy, Default)]
pub struct Key {
    dst: u128,
    entry: Entry,
    fib: u32,
}

impl Ip6Lookup {
    /// The table a packet is looked up in.
    #[inline(always)]
    fn table(&self, pkt: &Packet<'_>) -> FibIndex {
        match pkt.tx() {
            SwIfIndex::NONE => FibIndex(self.interfaces.ip6_table(pkt.rx())),
            // A feature, a driver or whoever made the packet chose another.
            SwIfIndex(fib) => FibIndex(fib),
        }
    }

    /// What is known of a packet before it is looked up.
    pub(super) fn key(&self, pkt: &Packet<'_>) -> Option<Key> {
        let ip = pkt.header::<Ip6Header>()?;
        Some(Key { dst: ip.dst_u128(), fib: self.table(pkt).0, ..Key::default() })
    }

    /// Where a packet goes that has found an adjacency.
    pub(super) fn follow(
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

    /// What `show trace` says; the hash is that of the table the packet came to first.
    pub(super) fn trace(&self, key: Key, index: AdjIndex, pkt: &Packet<'_>, guard: Guard<'_>) -> Trace {
        let balance = self.adjacencies.get(index, guard).is_balance();
        let hash = if balance { self.fib.flow_hash_ip6(FibIndex(key.fib), pkt.data()) } else { 0 };
        Trace { fib: key.fib, adj: index.0, hash, headers: Headers::of(pkt) }
    }
}

impl StagedNode for Ip6Lookup {
    const NAME: &'static str = "ip6-lookup";
    const STAGES: usize = STAGES as usize;
    type Next = Next;
    type Error = Error;
    type Trace = Trace;
    type Key = Key;

    #[inline(always)]
    fn prepare(&self, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Key {
        let Some(ip) = pkt.header::<Ip6Header>() else { return Key::default() };
        let (dst, fib) = (ip.dst_u128(), self.table(pkt));
        let Some(trie) = self.fib.trie_ip6(fib, cx.guard()) else { return Key { dst, ..Key::default() } };
        let entry = trie.root(dst);
        trie.prefetch_step(entry, dst, 1);
        Key { dst, entry, fib: fib.0 }
    }

    #[inline(always)]
    fn stage(&self, stage: usize, key: Key, cx: &mut Cx<'_, Self>) -> Key {
        if key.entry.is_final() {
            return key;
        }
        let Some(trie) = self.fib.trie_ip6(FibIndex(key.fib), cx.guard()) else { return Key::default() };
        let level = stage as u8 + 1;
        let entry = trie.step(key.entry, key.dst, level);
        if entry.is_final() {
            self.adjacencies.prefetch(AdjIndex(entry.value()));
        } else {
            trie.prefetch_step(entry, key.dst, level + 1);
        }
        Key { entry, ..key }
    }

    #[inline(always)]
    fn packet(&self, key: Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let guard = cx.guard();
        let value = if key.entry.is_final() { key.entry.value() } else { self.deep(key, guard) };
        let index = AdjIndex(value);
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
    /// The levels below those of the stages.
    #[inline(always)]
    fn deep(&self, key: Key, guard: Guard<'_>) -> u32 {
        let Some(trie) = self.fib.trie_ip6(FibIndex(key.fib), guard) else { return 0 };
        let mut entry = key.entry;
        for level in STAGES + 1..=<u128 as Address>::LEVELS {
            if entry.is_final() {
                break;
            }
            entry = trie.step(entry, key.dst, level);
        }
        entry.value()
    }
}

impl Finds for Ip6Lookup {
    type Facts<'g> = (&'g Mtrie6, FibIndex);
    type Found<'g> = &'g Adj;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        let fib = FibIndex(self.interfaces.ip6_table(interface));
        Some((self.fib.trie_ip6(fib, guard)?, fib))
    }

    #[inline(always)]
    fn find<'g>(
        &'g self,
        (trie, fib): Self::Facts<'g>,
        pkt: &mut Packet<'_>,
        guard: Guard<'g>,
    ) -> Option<&'g Adj> {
        let dst = pkt.header::<Ip6Header>()?.dst_u128();
        let mut index = AdjIndex(trie.lookup(dst));
        let mut adj = self.adjacencies.get(index, guard);
        if !adj.is_rewrite() {
            if !adj.is_balance() {
                return None;
            }
            index = self.share(adj, fib, pkt);
            adj = self.adjacencies.get(index, guard);
            if !adj.is_rewrite() {
                return None;
            }
        }
        if pkt.tx() != SwIfIndex::NONE {
            return None;
        }
        pkt.meta_mut().adj = index.0;
        Some(adj)
    }
}
