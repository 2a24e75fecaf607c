//! `ip4-lookup`: the longest prefix that covers the destination.
//! ip4-input | features | anything made here -> **ip4-lookup** -> ip4-rewrite | ip4-local | ip4-arp | ip4-glean |
//! ip4-drop | ip4-punt
//!
//! Staged: over the whole frame the first step into the trie is taken and the second asked for, before any packet
//! goes on.

use shoal_adj::{Adj, AdjIndex, AdjKind, AdjTable};
use shoal_buffer::{Meta, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::superpath::Finds;
use shoal_graph::{Cx, StagedNode};
use shoal_infra::mtrie4::Entry;
use shoal_infra::{Guard, Mtrie4};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_wire::Ip4Header;

use crate::Headers;

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
    /// To a host on a connected network.
    #[node("ip4-glean")]
    Glean,
    /// There is no way, and the sender may be told.
    #[node("ip4-drop")]
    Drop,
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
#[line("fib {fib} dpo-idx {adj} flow hash: 0x00000000")]
#[line("{headers}")]
pub struct Trace {
    fib: u32,
    adj: u32,
    headers: Headers,
}

/// Tables a packet may be sent through one after the other.
const MOST_TABLES: usize = 8;

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
        match pkt.tx() {
            SwIfIndex::NONE => FibIndex(self.interfaces.ip4_table(pkt.rx())),
            // A feature, a driver or whoever made the packet chose another.
            SwIfIndex(fib) => FibIndex(fib),
        }
    }

    /// Everything but a complete rewrite; follows the route through other tables.
    #[cold]
    fn rest(&self, dst: u32, index: AdjIndex, meta: &mut Meta, guard: Guard<'_>) -> Result<Next, Error> {
        let mut index = index;
        for _ in 0..=MOST_TABLES {
            let adj = self.adjacencies.get(index, guard);
            if adj.kind() != AdjKind::Lookup {
                meta.adj = index.0;
                return Ok(next(adj));
            }
            index = self.fib.lookup(FibIndex(adj.argument), dst, guard);
        }
        Err(Error::TooManyTables)
    }
}

fn next(adj: &Adj) -> Next {
    match adj.kind() {
        AdjKind::Rewrite => Next::Rewrite,
        AdjKind::Local => Next::Local,
        AdjKind::Incomplete => Next::Arp,
        AdjKind::Glean => Next::Glean,
        _ => Next::Drop,
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
        let value = if entry.is_final() {
            entry.value()
        } else {
            self.fib
                .trie(FibIndex(fib), cx.guard())
                .map_or(0, |trie| trie.stage3(trie.stage2(entry, dst), dst))
        };
        let index = AdjIndex(value);
        pkt.meta_mut().adj = index.0;
        cx.trace(pkt, || Trace { fib, adj: index.0, headers: Headers::of(pkt) });
        if self.adjacencies.get(index, cx.guard()).is_rewrite() {
            return Ok(Next::Rewrite);
        }
        self.rest(dst, index, pkt.meta_mut(), cx.guard())
    }
}

impl Finds for Ip4Lookup {
    type Facts<'g> = &'g Mtrie4;
    type Found<'g> = &'g Adj;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g Mtrie4> {
        self.fib.trie(FibIndex(self.interfaces.ip4_table(interface)), guard)
    }

    #[inline(always)]
    fn find<'g>(&'g self, trie: &'g Mtrie4, pkt: &mut Packet<'_>, guard: Guard<'g>) -> Option<&'g Adj> {
        let dst = pkt.header::<Ip4Header>()?.dst_u32();
        let index = AdjIndex(trie.lookup(dst));
        let adj = self.adjacencies.get(index, guard);
        if !adj.is_rewrite() || pkt.tx() != SwIfIndex::NONE {
            return None;
        }
        pkt.meta_mut().adj = index.0;
        Some(adj)
    }
}
