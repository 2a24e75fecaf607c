//! What packets read of an adjacency.

use std::fmt;

use shoal_buffer::SwIfIndex;
use shoal_graph::Edge;
use shoal_infra::{Guard, TwinTable, zeroable_struct};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum AdjKind {
    /// There is no route: the sender is told.
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
        rewrite_len: u8,
        edge: u16,
        tx: u32,
        /// The next hop's IPv4 address; 0 for a glean.
        pub next_hop: u32,
        /// For [`AdjKind::Lookup`]: the table. For a glean: the source address to ask with.
        pub argument: u32,
        /// Largest packet that may be sent.
        pub mtu: u16,
        rewrite: [u8; MAX_REWRITE],
    }
}

const _: () = assert!(size_of::<Adj>() <= 56, "an adjacency and its index share a cache line");

impl Adj {
    /// An adjacency that needs no interface.
    pub const fn special(kind: AdjKind) -> Adj {
        Adj {
            kind: kind as u8,
            rewrite_len: 0,
            edge: 0,
            tx: u32::MAX,
            next_hop: 0,
            argument: 0,
            mtu: u16::MAX,
            rewrite: [0; MAX_REWRITE],
        }
    }

    /// Look up again in another table.
    pub const fn lookup(table: u32) -> Adj {
        let mut adj = Adj::special(AdjKind::Lookup);
        adj.argument = table;
        adj
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

    /// The header to put in front when it is a plain Ethernet one, the common case.
    #[inline(always)]
    pub fn ethernet_rewrite(&self) -> Option<&[u8; 14]> {
        if self.rewrite_len == 14 { self.rewrite.first_chunk() } else { None }
    }

    /// The way from the rewrite node to the interface's output node.
    #[inline(always)]
    pub fn edge(&self) -> Edge {
        Edge(self.edge)
    }

    /// The sending interface.
    #[inline(always)]
    pub fn tx(&self) -> SwIfIndex {
        SwIfIndex(self.tx)
    }
}

/// All adjacencies as packets see them. Clones are the same table.
#[derive(Clone)]
pub struct AdjTable(pub(crate) TwinTable<Adj>);

impl AdjTable {
    /// One adjacency; [`AdjKind::None`] when there is none of this index.
    #[inline(always)]
    pub fn get<'g>(&'g self, index: AdjIndex, guard: Guard<'g>) -> &'g Adj {
        self.0.load(index.0 as usize, guard)
    }

    /// Starts loading one.
    #[inline(always)]
    pub fn prefetch(&self, index: AdjIndex) {
        self.0.prefetch(index.0 as usize);
    }
}
