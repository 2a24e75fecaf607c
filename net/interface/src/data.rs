//! What packets read of an interface.

use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::SwIfIndex;
use shoal_graph::NodeIndex;
use shoal_infra::{Guard, StableArena, TwinTable, zeroable_struct};
use shoal_wire::MacAddress;

/// Facts about an interface, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IfFlags(pub u32);

impl IfFlags {
    /// The operator wants it up.
    pub const ADMIN_UP: IfFlags = IfFlags(1);
    /// Its device says that the other end is there.
    pub const LINK_UP: IfFlags = IfFlags(1 << 1);
    /// Frames have an Ethernet header.
    pub const ETHERNET: IfFlags = IfFlags(1 << 2);
    /// It takes part in IPv4.
    pub const IP4: IfFlags = IfFlags(1 << 3);
    /// It takes part in IPv6.
    pub const IP6: IfFlags = IfFlags(1 << 4);
    /// It accepts frames for other MAC addresses.
    pub const PROMISCUOUS: IfFlags = IfFlags(1 << 5);
    /// Its device completes layer-4 checksums on the way out.
    pub const TX_CHECKSUM: IfFlags = IfFlags(1 << 6);
    /// Its device cuts large packets on the way out.
    pub const TX_GSO: IfFlags = IfFlags(1 << 7);
    /// Its frames are switched, not routed.
    pub const LAYER2: IfFlags = IfFlags(1 << 8);

    /// Whether all bits of `other` are set.
    #[inline(always)]
    pub const fn all(self, other: IfFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline(always)]
    pub const fn has(self, other: IfFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// These bits with those of `other` set or not.
    #[must_use]
    pub const fn set(self, other: IfFlags, on: bool) -> IfFlags {
        if on { IfFlags(self.0 | other.0) } else { IfFlags(self.0 & !other.0) }
    }
}

zeroable_struct! {
    /// One interface as packets see it. All zero: there is no such interface, and it is down.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct IfData {
        flags: u32,
        mac: [u8; 6],
        /// The edge of `interface-output-arc-end` to the interface's `-tx` node.
        pub arc_end_edge: u16,
        /// The edge of `device-input-arc-end` to where received frames go after that arc.
        pub device_input_end_edge: u16,
        /// The edge of `interface-output` to the interface's `-output` node.
        pub output_edge: u16,
        /// Largest packet it carries, without the Ethernet header.
        pub mtu: u16,
        /// Largest IPv4 packet, 0: `mtu` holds.
        pub mtu_ip4: u16,
        /// Largest IPv6 packet, 0: `mtu` holds.
        pub mtu_ip6: u16,
        /// The node its received frames go to.
        rx_next: u32,
        /// The same, when they are to be traced: never a superpath.
        rx_next_traced: u32,
        /// The IPv4 forwarding table packets received here are looked up in.
        pub fib_ip4: u32,
        /// The IPv6 forwarding table packets received here are looked up in.
        pub fib_ip6: u32,
        /// The hardware interface it belongs to; itself, unless it is a sub-interface.
        pub hardware: u32,
    }
}

const _: () = assert!(size_of::<IfData>() <= 56, "the record and its index share a cache line");

impl IfData {
    /// Its flags.
    #[inline(always)]
    pub fn flags(&self) -> IfFlags {
        IfFlags(self.flags)
    }

    /// The same record with other flags.
    #[must_use]
    pub fn with_flags(mut self, flags: IfFlags) -> Self {
        self.flags = flags.0;
        self
    }

    /// Its MAC address.
    #[inline(always)]
    pub fn mac(&self) -> MacAddress {
        MacAddress(self.mac)
    }

    /// The same, in place.
    #[inline(always)]
    pub fn mac_bytes(&self) -> &[u8; 6] {
        &self.mac
    }

    /// The same record with another MAC address.
    #[must_use]
    pub fn with_mac(mut self, mac: MacAddress) -> Self {
        self.mac = mac.0;
        self
    }

    /// Where its received frames go.
    #[inline(always)]
    pub fn rx_next(&self, traced: bool) -> NodeIndex {
        NodeIndex::from_number(if traced { self.rx_next_traced } else { self.rx_next })
    }

    /// The same record with other nodes for received frames.
    #[must_use]
    pub fn with_rx_next(mut self, next: NodeIndex, traced: NodeIndex) -> Self {
        self.rx_next = next.number();
        self.rx_next_traced = traced.number();
        self
    }

    /// Whether it may carry packets.
    #[inline(always)]
    pub fn is_up(&self) -> bool {
        self.flags().has(IfFlags::ADMIN_UP)
    }

    /// Largest IPv4 packet it carries.
    #[inline(always)]
    pub fn ip4_mtu(&self) -> u16 {
        if self.mtu_ip4 == 0 { self.mtu } else { self.mtu_ip4 }
    }

    /// Largest IPv6 packet it carries.
    #[inline(always)]
    pub fn ip6_mtu(&self) -> u16 {
        if self.mtu_ip6 == 0 { self.mtu } else { self.mtu_ip6 }
    }
}

/// All interfaces as packets see them. Clones are the same table.
#[derive(Clone)]
pub struct IfTable {
    pub(crate) records: TwinTable<IfData>,
    pub(crate) ip4_tables: StableArena<AtomicU32>,
    pub(crate) ip6_tables: StableArena<AtomicU32>,
}

impl IfTable {
    /// One interface; all zero when there is none of this index.
    #[inline(always)]
    pub fn get<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> &'g IfData {
        self.records.load(interface.0 as usize, guard)
    }

    /// The IPv4 forwarding table packets received on an interface are looked up in, and nothing else of it.
    #[inline(always)]
    pub fn ip4_table(&self, interface: SwIfIndex) -> u32 {
        self.ip4_tables.get(interface.0 as usize).map_or(0, |t| t.load(Ordering::Relaxed))
    }

    /// The same of IPv6.
    #[inline(always)]
    pub fn ip6_table(&self, interface: SwIfIndex) -> u32 {
        self.ip6_tables.get(interface.0 as usize).map_or(0, |t| t.load(Ordering::Relaxed))
    }
}
