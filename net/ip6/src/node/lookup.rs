//! `ip6-lookup`: the longest prefix that covers the destination.
//! ip6-input | features | anything made here -> **ip6-lookup** -> ip6-rewrite | ip6-local | ip6-drop | whoever asks
//! for neighbours
//!
//! Staged: each stage takes one step into the trie over the whole frame and asks for the next, so that up to a /48
//! the misses of all packets overlap.

use shoal_adj::{Adj, AdjIndex, AdjKind, AdjTable};
use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::superpath::Finds;
use shoal_graph::{Cx, Edge, StagedNode};
use shoal_infra::mtrie::{Address, Entry};
use shoal_infra::{Guard, Mtrie6};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_wire::Ip6Header;
use shoal_wire::ip6_address::is_link_local;

use crate::{Headers, Ip6LinkTable, edges::Ip6Edges};

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

/// Tables a packet may be sent through one after the other.
const MOST_TABLES: usize = 8;

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

    /// The member of a balance that a packet takes. Apart, because most routes have one way.
    #[inline(never)]
    fn share(&self, adj: &Adj, fib: FibIndex, pkt: &Packet<'_>) -> AdjIndex {
        self.adjacencies.balance(adj, self.fib.flow_hash_ip6(fib, pkt.data()))
    }

    /// Everything but a complete rewrite: the link's own addresses; a route through balances and other tables.
    #[inline(never)]
    fn rest(&self, key: Key, index: AdjIndex, pkt: &mut Packet<'_>, guard: Guard<'_>) -> Result<Next, Error> {
        let dst = key.dst;
        if dst >> 120 == 0xff || is_link_local(dst.into()) {
            return self.on_link(dst, pkt.reborrow(), guard);
        }
        let (mut index, mut fib) = (index, FibIndex(key.fib));
        for _ in 0..=MOST_TABLES {
            let mut adj = self.adjacencies.get(index, guard);
            if adj.is_balance() {
                index = self.share(adj, fib, pkt);
                adj = self.adjacencies.get(index, guard);
            }
            if adj.kind() != AdjKind::Lookup {
                pkt.meta_mut().adj = index.0;
                return Ok(self.next(adj));
            }
            fib = FibIndex(adj.table());
            index = self.fib.lookup_ip6(fib, dst, guard);
        }
        Err(Error::TooManyTables)
    }

    /// What `show trace` says; the hash is that of the table the packet came to first.
    fn trace(&self, key: Key, index: AdjIndex, pkt: &Packet<'_>, guard: Guard<'_>) -> Trace {
        let balance = self.adjacencies.get(index, guard).is_balance();
        let hash = if balance { self.fib.flow_hash_ip6(FibIndex(key.fib), pkt.data()) } else { 0 };
        Trace { fib: key.fib, adj: index.0, hash, headers: Headers::of(pkt) }
    }

    /// RFC 4291, 2.5.6 and 2.7: groups and link-local addresses mean something on one link only. A packet from
    /// elsewhere goes no further than this router.
    fn on_link(&self, dst: u128, mut pkt: Packet<'_>, guard: Guard<'_>) -> Result<Next, Error> {
        let is_group = dst >> 120 == 0xff;
        let missing = if is_group { Error::Group } else { Error::LinkLocal };
        let index = self.links.find(pkt.rx(), dst, guard).ok_or(missing)?;
        let adj = self.adjacencies.get(index, guard);
        if adj.kind() != AdjKind::Local && !pkt.flags().has(Flags::LOCALLY_ORIGINATED) {
            return Err(missing);
        }
        pkt.meta_mut().adj = index.0;
        Ok(self.next(adj))
    }

    fn next(&self, adj: &Adj) -> Next {
        let asker = match adj.kind() {
            AdjKind::Rewrite => return Next::Rewrite,
            AdjKind::Local => return Next::Local,
            AdjKind::Incomplete => adj.edge(),
            AdjKind::Glean => self.edges.glean(),
            _ => return Next::Drop,
        };
        // Without anybody who asks it leads nowhere.
        if asker == Edge::DROP { Next::Drop } else { Next::Ask(asker) }
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
        self.rest(key, index, pkt, guard)
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
