//! What packets read of an adjacency.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use shoal_buffer::SwIfIndex;
use shoal_graph::Edge;
use shoal_graph::counter::Combined;
use shoal_infra::{Guard, StableArena, TwinTable, zeroable_struct};

use crate::Link;

/// An adjacency's place in the table. 0 is the one all packets without a route meet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct AdjIndex(pub u32);

impl AdjIndex {
    /// No route.
    pub const NONE: AdjIndex = AdjIndex(0);
}

impl fmt::Display for AdjIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What becomes of a packet whose route ends here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum AdjKind {
    /// There is no route: the sender gets an error.
    None = 0,
    /// Send it: the rewrite is complete.
    Rewrite = 1,
    /// The neighbour's address is not known yet: ask for it.
    Incomplete = 2,
    /// A directly connected network: the neighbour is the packet's destination.
    Glean = 3,
    /// It is for this router.
    Local = 4,
    /// Throw it away silently.
    Drop = 5,
    /// Throw it away and tell the sender that there is no way.
    Unreachable = 6,
    /// Throw it away and tell the sender that it is forbidden.
    Prohibit = 7,
    /// Hand it to the host.
    Punt = 8,
    /// Look it up again in another table.
    Lookup = 9,
    /// One of many, chosen by the packet's flow.
    Balance = 10,
    /// To all stations of a link that listen to the packet's group: the rewrite's destination is completed from it.
    Multicast = 11,
    /// As if it had been received by another interface.
    InterfaceRx = 12,
    /// Bridged out of an interface, behind the link's header the packet came with.
    Dvr = 14,
    /// Its packets are counted for a route, and go on to another adjacency.
    Count = 13,
    /// A neighbour that was found not to be reachable: thrown away silently.
    Closed = 15,
    /// To a node of the graph.
    Node = 16,
}

impl AdjKind {
    #[inline(always)]
    fn from_u8(n: u8) -> AdjKind {
        match n {
            1 => AdjKind::Rewrite,
            2 => AdjKind::Incomplete,
            3 => AdjKind::Glean,
            4 => AdjKind::Local,
            5 => AdjKind::Drop,
            6 => AdjKind::Unreachable,
            7 => AdjKind::Prohibit,
            8 => AdjKind::Punt,
            9 => AdjKind::Lookup,
            10 => AdjKind::Balance,
            11 => AdjKind::Multicast,
            12 => AdjKind::InterfaceRx,
            13 => AdjKind::Count,
            14 => AdjKind::Dvr,
            15 => AdjKind::Closed,
            16 => AdjKind::Node,
            _ => AdjKind::None,
        }
    }
}

/// Longest rewrite: an Ethernet header with two VLAN tags.
pub const MAX_REWRITE: usize = 22;

zeroable_struct! {
    /// One adjacency. All zero: no route.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Adj {
        kind: u8,
        /// The family of `address`.
        family: u8,
        rewrite_len: u8,
        /// [`FEATURES`] and [`COUNTED`]. Beside the length, so that the short way of a rewrite node looks at both at once.
        flags: u8,
        edge: u16,
        /// Largest packet that may be sent.
        pub mtu: u16,
        tx: u32,
        /// The index of the adjacency this record is of; that of a copy is the original's.
        own: u32,
        /// In host order; what it is depends on the kind. A next hop; the source to ask with, for a glean; the table,
        /// for a lookup; the first bucket and a mask, for a balance. IPv4 has the first word.
        address: [u32; 4],
        rewrite: [u8; MAX_REWRITE],
        /// What it carries.
        link: u8,
    }
}

const _: () = assert!(size_of::<Adj>() <= 56, "an adjacency and its index share a cache line");

const IP6: u8 = 1;
/// In `flags`: its packets are counted.
const COUNTED: u8 = 1;
/// In `flags`: features run behind the rewrite.
const FEATURES: u8 = 1 << 1;

/// Most interfaces that a balance's record names.
const REACHED: usize = MAX_REWRITE / 4;

/// Instead of their number: there are more, or one of the members leads to another table.
const MANY_REACHED: u16 = u16::MAX;

impl Adj {
    /// An adjacency that needs no interface.
    pub const fn special(kind: AdjKind) -> Adj {
        Adj {
            kind: kind as u8,
            rewrite_len: 0,
            flags: 0,
            family: 0,
            link: 0,
            edge: 0,
            mtu: u16::MAX,
            tx: u32::MAX,
            own: 0,
            address: [0; 4],
            rewrite: [0; MAX_REWRITE],
        }
    }

    /// Look up again in another table, of the packet's own family.
    pub const fn lookup(table: u32) -> Adj {
        let mut adj = Adj::special(AdjKind::Lookup);
        adj.address = [table, 0, 0, 0];
        adj
    }

    /// Look up the packet's source in another table, and send the packet where that leads.
    pub const fn source_lookup(table: u32) -> Adj {
        let mut adj = Adj::lookup(table);
        adj.address = [table, 1, 0, 0];
        adj
    }

    /// For a lookup in another table: whether the packet's source is looked up.
    pub const fn by_source(&self) -> bool {
        matches!(self.address, [_, 1, ..])
    }

    /// Count for a route, and go on.
    pub(crate) const fn counter(to: AdjIndex) -> Adj {
        let mut adj = Adj::special(AdjKind::Count);
        adj.address = [to.0, 0, 0, 0];
        adj
    }

    /// For a route's counter: where its packets go on.
    #[inline(always)]
    pub fn behind(&self) -> AdjIndex {
        AdjIndex(self.address[0])
    }

    /// One of the `mask` + 1 buckets from `base` on.
    pub(crate) const fn balance(base: u32, mask: u32) -> Adj {
        let mut adj = Adj::special(AdjKind::Balance);
        adj.address = [base, mask, 0, 0];
        adj
    }

    /// The same balance, saying by which interfaces its members leave: all of them, each once, or nothing (then its
    /// buckets must be looked through).
    #[must_use]
    pub(crate) fn with_reached(mut self, interfaces: Option<&[SwIfIndex]>) -> Adj {
        let few = interfaces.filter(|all| all.len() <= REACHED);
        self.mtu = few.map_or(MANY_REACHED, |all| all.len() as u16);
        for (to, from) in self.rewrite.chunks_exact_mut(4).zip(few.unwrap_or_default()) {
            to.copy_from_slice(&from.0.to_ne_bytes());
        }
        self
    }

    /// The interfaces a balance's members leave by, if they are few.
    #[inline]
    fn reached(&self) -> Option<impl Iterator<Item = SwIfIndex> + '_> {
        let count = usize::from(self.mtu);
        let interface = |bytes: &[u8; 4]| SwIfIndex(u32::from_ne_bytes(*bytes));
        (count <= REACHED).then(|| self.rewrite.as_chunks().0.iter().take(count).map(interface))
    }

    /// Whether its packets leave by an interface that is known.
    #[inline(always)]
    fn leaves(&self) -> bool {
        matches!(self.kind(), AdjKind::Rewrite | AdjKind::Incomplete | AdjKind::Glean | AdjKind::Closed)
    }

    /// The interface its packets leave by, of a single neighbour or network.
    pub(crate) fn way_out(&self) -> Option<SwIfIndex> {
        self.leaves().then(|| self.tx())
    }

    /// For a balance: its first bucket, and how many there are.
    pub(crate) fn bucket_range(&self) -> Option<(u32, u32)> {
        (self.kind() == AdjKind::Balance).then_some((self.address[0], self.address[1] + 1))
    }

    /// For a balance: how many buckets it has.
    pub fn buckets(&self) -> u32 {
        self.bucket_range().map_or(0, |(_, n)| n)
    }

    /// Whether it is a balance, the second most common case.
    #[inline(always)]
    pub fn is_balance(&self) -> bool {
        self.kind == AdjKind::Balance as u8
    }

    /// An adjacency on an interface, without a rewrite.
    pub const fn on(kind: AdjKind, tx: SwIfIndex, mtu: u16) -> Adj {
        let mut adj = Adj::special(kind);
        adj.tx = tx.0;
        adj.mtu = mtu;
        adj
    }

    /// The same with a rewrite; `edge` leads from the rewrite node to the interface's output node. One longer than
    /// [`MAX_REWRITE`] is cut.
    #[must_use]
    pub fn with_rewrite(mut self, rewrite: &[u8], edge: Edge) -> Adj {
        let n = rewrite.len().min(MAX_REWRITE);
        if let (Some(to), Some(from)) = (self.rewrite.get_mut(..n), rewrite.get(..n)) {
            to.copy_from_slice(from);
        }
        self.rewrite_len = n as u8;
        self.edge = edge.0;
        self
    }

    /// The same with a next hop, or a source to ask with.
    #[must_use]
    pub const fn with_address(mut self, address: IpAddr) -> Adj {
        match address {
            IpAddr::V4(a) => (self.family, self.address) = (0, [a.to_bits(), 0, 0, 0]),
            IpAddr::V6(a) => {
                let n = a.to_bits();
                self.family = IP6;
                self.address = [(n >> 96) as u32, (n >> 64) as u32, (n >> 32) as u32, n as u32];
            }
        }
        self
    }

    /// The same for other packets.
    #[must_use]
    pub const fn with_link(mut self, link: Link) -> Adj {
        self.link = link as u8;
        self
    }

    /// The same with another edge: for one that is incomplete the way from the lookup node to the node that asks for
    /// the neighbour ([`Adjacencies::edge_to_asker`](crate::Adjacencies::edge_to_asker)).
    #[must_use]
    pub const fn with_edge(mut self, edge: Edge) -> Adj {
        self.edge = edge.0;
        self
    }

    /// The same with features to run behind the rewrite, or without.
    #[must_use]
    pub(crate) const fn with_features(mut self, on: bool) -> Adj {
        self.flags = self.flags & !FEATURES | if on { FEATURES } else { 0 };
        self
    }

    /// Whether features run behind the rewrite: on the arc that the link's rewrite node starts.
    #[inline(always)]
    pub fn has_features(&self) -> bool {
        self.flags & FEATURES != 0
    }

    /// The same record as that of another adjacency.
    #[must_use]
    pub(crate) const fn of(mut self, own: AdjIndex) -> Adj {
        self.own = own.0;
        self
    }

    /// The same, and packets to it are thrown away.
    #[must_use]
    pub(crate) const fn closed(mut self) -> Adj {
        self.kind = AdjKind::Closed as u8;
        self
    }

    /// What becomes of the packet.
    #[inline(always)]
    pub fn kind(&self) -> AdjKind {
        AdjKind::from_u8(self.kind)
    }

    /// Whether it is a complete rewrite, the common case.
    #[inline(always)]
    pub fn is_rewrite(&self) -> bool {
        self.kind == AdjKind::Rewrite as u8
    }

    /// The header to put in front.
    #[inline(always)]
    pub fn rewrite(&self) -> &[u8] {
        self.rewrite.get(..usize::from(self.rewrite_len)).unwrap_or_default()
    }

    /// Whether the rewrite is so long and these are its flags, in one comparison.
    #[inline(always)]
    const fn has(&self, rewrite_len: u8, flags: u8) -> bool {
        let both = u16::from_ne_bytes([self.rewrite_len, self.flags]);
        both == u16::from_ne_bytes([rewrite_len, flags])
    }

    /// The header to put in front when it is a plain Ethernet one, no features run behind it and packets are not
    /// counted: the common case.
    #[inline(always)]
    pub fn ethernet_rewrite(&self) -> Option<&[u8; 14]> {
        if self.has(14, 0) { self.rewrite.first_chunk() } else { None }
    }

    /// The header to put in front when there is none, as on a tunnel, no features run and packets are not counted.
    #[inline(always)]
    pub fn no_rewrite(&self) -> Option<&[u8; 0]> {
        if self.has(0, 0) { self.rewrite.first_chunk() } else { None }
    }

    /// The header to put in front when it is an Ethernet one with tags, `N` bytes long, no features run behind it and
    /// packets are not counted.
    #[inline(always)]
    pub fn tagged_rewrite<const N: usize>(&self) -> Option<&[u8; N]> {
        if self.has(N as u8, 0) { self.rewrite.first_chunk() } else { None }
    }

    /// The header to put in front when it is a plain Ethernet one, packets are not counted, and features may run behind
    /// it.
    #[inline(always)]
    pub fn featured_ethernet_rewrite(&self) -> Option<&[u8; 14]> {
        if self.has(14, FEATURES) { self.rewrite.first_chunk() } else { None }
    }

    /// Whether its packets are counted: by [`AdjTable::count`], which users of [`Adj::rewrite`] call.
    #[inline(always)]
    pub fn is_counted(&self) -> bool {
        self.flags & COUNTED != 0
    }

    /// The same with its packets counted or not.
    #[must_use]
    pub(crate) const fn with_count(mut self, on: bool) -> Adj {
        self.flags = if on { self.flags | COUNTED } else { self.flags & !COUNTED };
        self
    }

    /// The way from the rewrite node to the interface's output node; for one that is incomplete see
    /// [`Adj::with_edge`].
    #[inline(always)]
    pub fn edge(&self) -> Edge {
        Edge(self.edge)
    }

    /// The sending interface.
    #[inline(always)]
    pub fn tx(&self) -> SwIfIndex {
        SwIfIndex(self.tx)
    }

    /// The index of the adjacency this is the record of. It differs from the index it was found by when that is
    /// a route's own and stands for this one.
    #[inline(always)]
    pub fn own(&self) -> AdjIndex {
        AdjIndex(self.own)
    }

    /// What it carries.
    #[inline(always)]
    pub fn link(&self) -> Link {
        if self.link == Link::Ip6 as u8 { Link::Ip6 } else { Link::Ip4 }
    }

    /// Whether packets fare by both records alike: all but whose they are.
    pub fn leads_where(&self, other: &Adj) -> bool {
        self.of(AdjIndex::NONE).with_count(false) == other.of(AdjIndex::NONE).with_count(false)
    }

    fn has_next_hop(&self) -> bool {
        matches!(self.kind(), AdjKind::Rewrite | AdjKind::Incomplete | AdjKind::Closed)
    }

    fn address(&self) -> IpAddr {
        let [a, b, c, d] = self.address;
        if self.family == IP6 {
            let high = u64::from(a) << 32 | u64::from(b);
            let low = u64::from(c) << 32 | u64::from(d);
            Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).into()
        } else {
            Ipv4Addr::from_bits(a).into()
        }
    }

    /// The neighbour; `None` for a kind that has none, and on a link where the other end needs no address.
    pub fn next_hop(&self) -> Option<IpAddr> {
        let has = self.has_next_hop() && self.address != [0; 4];
        has.then(|| self.address())
    }

    /// The neighbour's IPv4 address (host order); 0 when it has none.
    #[inline(always)]
    pub fn next_hop_ip4(&self) -> u32 {
        if self.family != IP6 && self.has_next_hop() { self.address[0] } else { 0 }
    }

    /// For a glean: the address to ask with.
    pub fn source(&self) -> Option<IpAddr> {
        (self.kind() == AdjKind::Glean && self.address != [0; 4]).then(|| self.address())
    }

    /// For a glean: the IPv4 address to ask with (host order); 0 when there is none.
    #[inline(always)]
    pub fn source_ip4(&self) -> u32 {
        if self.family != IP6 && self.kind() == AdjKind::Glean { self.address[0] } else { 0 }
    }

    /// For a lookup: the table, of the packet's family.
    #[inline(always)]
    pub fn table(&self) -> u32 {
        self.address[0]
    }
}

/// Whether packets that take an adjacency leave by an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaches {
    /// They do, or some of them.
    Yes,
    /// They do not.
    No,
    /// They are looked up again in this table.
    Elsewhere(u32),
}

fn found(yes: bool) -> Reaches {
    if yes { Reaches::Yes } else { Reaches::No }
}

/// All adjacencies as packets see them. Clones are the same table.
#[derive(Clone)]
pub struct AdjTable {
    pub(crate) records: TwinTable<Adj>,
    pub(crate) buckets: StableArena<AtomicU32>,
    /// Made when somebody first asks for counts.
    pub(crate) counter: Arc<OnceLock<Combined>>,
    /// The same for those of routes.
    pub(crate) routes: Arc<OnceLock<Combined>>,
}

impl AdjTable {
    /// Counts a packet that got an adjacency's header, if it is to be counted: for the neighbour and, when it came by
    /// a route whose way may change, for that route's path list. `found` is the index it was found by, `bytes` are
    /// with the header.
    pub fn count(&self, adj: &Adj, found: AdjIndex, thread: usize, bytes: usize) {
        if !adj.is_counted() {
            return;
        }
        let Some(counter) = self.counter.get() else { return };
        counter.add(thread, adj.own().0 as usize, 1, bytes as u64);
        if found != adj.own() {
            counter.add(thread, found.0 as usize, 1, bytes as u64);
        }
    }

    /// Counts a packet for the route whose counter it was found by, and says where it goes on.
    #[cold]
    pub fn count_route(&self, found: AdjIndex, adj: &Adj, thread: usize, bytes: usize) -> AdjIndex {
        if let Some(counter) = self.routes.get() {
            counter.add(thread, found.0 as usize, 1, bytes as u64);
        }
        adj.behind()
    }

    /// What a leaf leads to, whether the route counts or not.
    #[inline(always)]
    pub fn of_leaf<'g>(&'g self, leaf: AdjIndex, guard: Guard<'g>) -> &'g Adj {
        let adj = self.get(leaf, guard);
        if adj.kind() == AdjKind::Count { self.get(adj.behind(), guard) } else { adj }
    }

    /// One adjacency; [`AdjKind::None`] when there is none of this index.
    #[inline(always)]
    pub fn get<'g>(&'g self, index: AdjIndex, guard: Guard<'g>) -> &'g Adj {
        self.records.load(index.0 as usize, guard)
    }

    /// The member of a balance that a flow takes. What it finds is no balance.
    #[inline(always)]
    pub fn balance(&self, adj: &Adj, hash: u32) -> AdjIndex {
        let [base, mask, ..] = adj.address;
        let bucket = self.buckets.get(base.wrapping_add(hash & mask) as usize);
        bucket.map_or(AdjIndex::NONE, |member| AdjIndex(member.load(Ordering::Acquire)))
    }

    /// Whether packets that take an adjacency leave by an interface, `None`: by any. Of several ways one is enough; one
    /// that is not known to be up counts, one to this router or to nowhere does not.
    pub fn reaches(&self, index: AdjIndex, by: Option<SwIfIndex>, guard: Guard<'_>) -> Reaches {
        let adj = self.of_leaf(index, guard);
        if !adj.is_balance() {
            return match adj.kind() {
                AdjKind::Lookup => Reaches::Elsewhere(adj.table()),
                _ => found(adj.leaves() && by.is_none_or(|by| by == adj.tx())),
            };
        }
        match adj.reached() {
            Some(mut few) => found(few.any(|interface| by.is_none_or(|by| by == interface))),
            None => self.look_through(adj, by, guard),
        }
    }

    /// Looks through the buckets of a balance; of its members that lead to other tables the first one counts.
    #[cold]
    fn look_through(&self, adj: &Adj, by: Option<SwIfIndex>, guard: Guard<'_>) -> Reaches {
        let (mut last, mut otherwise) = (AdjIndex::NONE, Reaches::No);
        for bucket in 0..adj.buckets() {
            let member = self.balance(adj, bucket);
            // Buckets of one member are mostly side by side.
            if std::mem::replace(&mut last, member) == member {
                continue;
            }
            let member = self.get(member, guard);
            match member.kind() {
                AdjKind::Lookup if otherwise == Reaches::No => otherwise = Reaches::Elsewhere(member.table()),
                _ if member.leaves() && by.is_none_or(|by| by == member.tx()) => return Reaches::Yes,
                _ => {}
            }
        }
        otherwise
    }

    /// Starts loading one.
    #[inline(always)]
    pub fn prefetch(&self, index: AdjIndex) {
        self.records.prefetch(index.0 as usize);
    }
}
