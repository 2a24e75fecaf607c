//! The header line of a buffer: what the graph knows about a packet besides its bytes.

use std::fmt;
use std::num::NonZeroU32;

use shoal_infra::Shares;

/// A software interface: the index operators and clients see (`local0` is 0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct SwIfIndex(pub u32);

/// Most interfaces: what is kept by interface has so many places.
pub const MAX_INTERFACES: usize = 1 << 16;

impl SwIfIndex {
    /// No interface.
    pub const NONE: SwIfIndex = SwIfIndex(u32::MAX);
}

impl fmt::Display for SwIfIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A forwarding table's place in its family's list of tables. 0 is table 0, always.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct FibIndex(pub u32);

impl FibIndex {
    /// Table 0.
    pub const DEFAULT: FibIndex = FibIndex(0);
    /// Tables of a family that packets can be sent to: what fits [`Meta`], and about as many as there may be
    /// interfaces.
    pub const MOST: usize = u16::MAX as usize;
}

impl fmt::Display for FibIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Facts about a packet, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Flags(pub u32);

impl Flags {
    /// The packet is being traced; its trace handle is valid.
    pub const TRACED: Flags = Flags(1);
    /// The layer-4 checksum holds only the pseudo-header sum and must be completed on the way out.
    pub const L4_CHECKSUM_OFFLOAD: Flags = Flags(1 << 1);
    /// The packet is larger than the wire allows and is cut into `gso_size` pieces on the way out.
    pub const GSO: Flags = Flags(1 << 2);
    /// With [`Flags::GSO`]: the pieces are TCP over IPv4.
    pub const GSO_TCP4: Flags = Flags(1 << 3);
    /// With [`Flags::GSO`]: the pieces are TCP over IPv6.
    pub const GSO_TCP6: Flags = Flags(1 << 4);
    /// With [`Flags::GSO`]: the pieces are UDP.
    pub const GSO_UDP: Flags = Flags(1 << 5);
    /// With [`Flags::GSO`]: the TCP segments carry ECN's CWR bit on the first piece only.
    pub const GSO_ECN: Flags = Flags(1 << 6);
    /// The packet was made by this router, not received.
    pub const LOCALLY_ORIGINATED: Flags = Flags(1 << 7);
    /// The packet came as an Ethernet broadcast or multicast: nothing may answer it with an error.
    pub const LINK_MULTICAST: Flags = Flags(1 << 8);
    /// Whether a redirect to the sender was already considered.
    pub const REDIRECT_DONE: Flags = Flags(1 << 10);
    /// The packet was flooded in a bridge domain and is routed there, though its frame was for a group: with
    /// [`Flags::LINK_MULTICAST`].
    pub const FLOODED: Flags = Flags(1 << 14);
    /// The packet is a copy of another one, made to be looked at: no copies are made of it for the same purpose.
    pub const MIRRORED: Flags = Flags(1 << 15);
    /// A route has the packet bridged out of its interface, behind the link's header it came with.
    pub const BRIDGED_BY_ROUTE: Flags = Flags(1 << 16);
    /// The layer-4 checksum was verified by the device or peer that gave us the packet.
    pub const L4_CHECKSUM_OK: Flags = Flags(1 << 9);

    /// How often a route had the packet received again, by another interface.
    const RECEIVED_AGAIN: u32 = 0b111 << 11;

    /// The same once a route has the packet received again; `None` when that happened too often, so that routes which
    /// lead packets in a circle do not keep them.
    #[inline]
    pub const fn received_again(self) -> Option<Flags> {
        if self.0 & Flags::RECEIVED_AGAIN == Flags::RECEIVED_AGAIN {
            return None;
        }
        Some(Flags(self.0 + (1 << 11)))
    }

    /// How often that was.
    #[inline]
    pub const fn received_again_times(self) -> u32 {
        (self.0 & Flags::RECEIVED_AGAIN) >> 11
    }

    /// Whether any bit of `other` is set.
    #[inline(always)]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// These bits and those of `other`.
    #[inline(always)]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These bits without those of `other`.
    #[inline(always)]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// What leads from one segment of a packet to the next.
///
/// By a link of its own a packet has the next segment alone, and may write it. By a shared one it may read the next
/// segment and all behind that, whatever links lead there; other packets have the like, and the segment counts them.
/// Neither `Copy` nor `Clone`: a link is a right, and is moved.
#[derive(Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Link(u32);

impl Link {
    pub(crate) const NONE: Link = Link(0);
    /// Buffers are numbered in cache lines, so this bit is free: see `memory::RESERVED`.
    const SHARED: u32 = 1 << 31;

    #[inline(always)]
    pub(crate) const fn own(index: u32) -> Link {
        Link(index)
    }

    #[inline(always)]
    pub(crate) const fn shared(index: u32) -> Link {
        Link(index | Link::SHARED)
    }

    /// The next segment, to be read.
    #[inline(always)]
    pub(crate) fn index(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0 & !Link::SHARED)
    }

    /// The next segment, if it is the packet's alone.
    #[inline(always)]
    pub(crate) fn to_own(&self) -> Option<NonZeroU32> {
        if self.is_shared() { None } else { self.index() }
    }

    #[inline(always)]
    pub(crate) fn is_shared(&self) -> bool {
        self.0 & Link::SHARED != 0
    }

    #[inline(always)]
    pub(crate) fn is_none(&self) -> bool {
        self.0 == 0
    }
}

/// One cache line in front of each buffer's bytes.
///
/// `current` and `length` describe the valid bytes of this segment and are changed only through
/// [`Packet`](crate::Packet), which keeps them inside the buffer; the other fields are the graph's.
///
/// It is neither `Clone` nor `Default`: a copied link to the next segment would be a second right to it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Meta {
    /// First valid byte, relative to the data area; negative inside the headroom.
    pub(crate) current: i16,
    /// Valid bytes of this segment.
    pub(crate) length: u16,
    /// See [`Flags`].
    pub flags: Flags,
    /// The interface the packet came in by.
    pub rx: SwIfIndex,
    /// The interface it goes out by; `NONE` before that is known.
    pub tx: SwIfIndex,
    /// What the lookup found: an adjacency index.
    pub adj: u32,
    /// Why the packet is dropped: a global error index, meaningful on the way to `error-drop`.
    pub error: u16,
    /// 0, or a table's index and 1: see [`Meta::fib`].
    fib: u16,
    /// What leads to the next segment.
    pub(crate) next: Link,
    /// Bytes of the packet in all later segments together. Shared ones may hold more, which are none of its.
    pub(crate) rest: u32,
    /// Which trace record belongs to the packet, when [`Flags::TRACED`].
    pub trace: u32,
    /// Start of the network header, relative to the data area.
    pub l3: i16,
    /// Start of the transport header, relative to the data area.
    pub l4: i16,
    /// Where the layer-4 checksum lies, counted from `l4`.
    pub checksum_offset: u16,
    /// Payload bytes of each piece of a [`Flags::GSO`] packet.
    pub gso_size: u16,
    /// The feature arc the packet is on.
    pub arc: u8,
    /// Its position on that arc.
    pub feature: u8,
    /// Bytes of the transport header of a [`Flags::GSO`] packet, which starts at `l4`.
    pub gso_header: u16,
    /// Hash of the packet's flow, 0 when not computed.
    pub flow_hash: u32,
    /// Links to this segment, when they are shared ones.
    pub(crate) shares: Shares,
}

const _: () = assert!(size_of::<Meta>() == 64);

impl Meta {
    /// The forwarding table the packet is looked up in; `None`: that of the interface it came in by.
    #[inline(always)]
    pub fn fib(&self) -> Option<FibIndex> {
        u32::from(self.fib).checked_sub(1).map(FibIndex)
    }

    /// Chooses another table for the lookup than the receiving interface's. There is none from [`FibIndex::MOST`] on:
    /// such a number chooses none.
    #[inline(always)]
    pub fn set_fib(&mut self, fib: Option<FibIndex>) {
        self.fib = fib.map_or(0, |fib| u16::try_from(fib.0.saturating_add(1)).unwrap_or(0));
    }

    /// Of a [`Flags::GSO`] packet: bytes behind the network headers of each piece into which a device cuts it.
    pub fn gso_piece(&self) -> Option<usize> {
        self.flags.has(Flags::GSO).then(|| usize::from(self.gso_header) + usize::from(self.gso_size))
    }

    /// The packet begins again as one that an interface has just received: nothing is known of where it goes.
    #[inline(always)]
    pub fn received_by(&mut self, rx: SwIfIndex) {
        (self.rx, self.tx, self.fib) = (rx, SwIfIndex::NONE, 0);
    }

    /// Takes over what the graph knows of another packet (interfaces, table, flags but those of a trace or of large
    /// packets): for packets made from it.
    pub fn inherit(&mut self, from: &Meta) {
        let own =
            Flags::TRACED.with(Flags::GSO).with(Flags::GSO_TCP4).with(Flags::GSO_TCP6).with(Flags::GSO_UDP);
        self.flags = from.flags.without(own).without(Flags::L4_CHECKSUM_OFFLOAD);
        (self.rx, self.tx, self.fib, self.adj) = (from.rx, from.tx, from.fib, from.adj);
        self.flow_hash = from.flow_hash;
    }

    /// Becomes what the graph knows of another packet, but for where its bytes lie and its trace: for a packet with the
    /// same bytes.
    pub(crate) fn take_over(&mut self, from: &Meta) {
        self.flags = from.flags.without(Flags::TRACED);
        (self.rx, self.tx, self.fib, self.adj) = (from.rx, from.tx, from.fib, from.adj);
        (self.l3, self.l4, self.checksum_offset) = (from.l3, from.l4, from.checksum_offset);
        (self.gso_size, self.gso_header) = (from.gso_size, from.gso_header);
        (self.arc, self.feature, self.flow_hash) = (from.arc, from.feature, from.flow_hash);
    }

    /// Is traced together with another packet, if that one is: for the pieces of a packet that is cut.
    pub fn share_trace(&mut self, from: &Meta) {
        if from.flags.has(Flags::TRACED) {
            self.flags = self.flags.with(Flags::TRACED);
            self.trace = from.trace;
        }
    }

    /// What a fresh buffer starts with.
    #[inline(always)]
    pub(crate) fn fresh() -> Meta {
        Meta {
            current: 0,
            length: 0,
            flags: Flags(0),
            rx: SwIfIndex(0),
            tx: SwIfIndex::NONE,
            adj: 0,
            error: 0,
            fib: 0,
            next: Link::NONE,
            rest: 0,
            trace: 0,
            l3: 0,
            l4: 0,
            checksum_offset: 0,
            gso_size: 0,
            arc: 0,
            feature: 0,
            gso_header: 0,
            flow_hash: 0,
            shares: Shares::new(0),
        }
    }
}
