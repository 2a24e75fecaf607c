//! What packets read of an interface.

use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::SwIfIndex;
use shoal_graph::NodeIndex;
use shoal_infra::{Guard, StableArena, TwinTable, zeroable_struct};
use shoal_wire::MacAddress;

use crate::extra_macs::ExtraMacs;

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
    /// Its frames are bridged or cross-connected, not routed.
    pub const L2: IfFlags = IfFlags(1 << 8);
    /// Frames without tags are a sub-interface's.
    pub const UNTAGGED_SUB: IfFlags = IfFlags(1 << 10);
    /// Its packets are a program's: there is no other station on its link.
    pub const FED: IfFlags = IfFlags(1 << 11);
    /// It is where the packets of its bridge domain are routed.
    pub const BVI: IfFlags = IfFlags(1 << 12);
    /// Its frames go out of another interface.
    pub const XCONNECT: IfFlags = IfFlags(1 << 13);
    /// Its frames are a bridge's.
    pub const BRIDGED: IfFlags = IfFlags(1 << 14);
    /// There is one station at the other end of its link, which takes what is sent there whatever the next hop.
    pub const POINT_TO_POINT: IfFlags = IfFlags(1 << 15);
    /// Its port takes frames for other MAC addresses besides its own.
    pub const EXTRA_MACS: IfFlags = IfFlags(1 << 16);
    /// Up, not in layer 2 and without such a sub-interface; follows from the other bits whenever flags are set, so that packets ask for one bit.
    const ROUTED: IfFlags = IfFlags(1 << 9);
    /// Up, in layer 2 and without such a sub-interface; follows from the other bits, as [`Self::ROUTED`].
    const SWITCHED: IfFlags = IfFlags(1 << 17);

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
        /// Numbers of virtual routers that it is, of IPv4 and of IPv6: one of each, for which frames are taken as fast as for its own
        /// address; 0: none.
        virtual_routers: [u8; 2],
        /// The node its received frames go to.
        rx_next: u32,
        /// The same, when they are to be traced: never a superpath.
        rx_next_traced: u32,
        /// The superpath of frames without tags, or of those that were a sub-interface's; 0: none.
        superpath: u32,
        /// The IPv4 forwarding table packets received here are looked up in.
        pub fib_ip4: u32,
        /// The IPv6 forwarding table packets received here are looked up in.
        pub fib_ip6: u32,
        /// The hardware interface it belongs to; itself, unless it is a sub-interface.
        pub hardware: u32,
        /// Type and id of the two tags of frames sent by it; 0 where there is none.
        tags: [u8; 8],
    }
}

const _: () = assert!(size_of::<IfData>() <= 56, "the record and its index share a cache line");

impl IfData {
    /// Its flags.
    #[inline(always)]
    pub fn flags(&self) -> IfFlags {
        IfFlags(self.flags).set(IfFlags::ROUTED.set(IfFlags::SWITCHED, true), false)
    }

    /// The same record with other flags.
    #[must_use]
    pub fn with_flags(mut self, flags: IfFlags) -> Self {
        let elsewhere = IfFlags::L2.set(IfFlags::UNTAGGED_SUB, true);
        let routed = flags.has(IfFlags::ADMIN_UP) && !flags.has(elsewhere);
        let switched =
            flags.all(IfFlags::ADMIN_UP.set(IfFlags::L2, true)) && !flags.has(IfFlags::UNTAGGED_SUB);
        self.flags = flags.set(IfFlags::ROUTED, routed).set(IfFlags::SWITCHED, switched).0;
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

    /// Whether a MAC address is that of a virtual router that it is (RFC 9568, 7.3), of those that the record has.
    #[inline(always)]
    pub fn is_virtual(&self, mac: MacAddress) -> bool {
        let [ip4, ip6] = self.virtual_routers;
        match mac.0 {
            [0, 0, 0x5e, 0, 1, id] => id != 0 && id == ip4,
            [0, 0, 0x5e, 0, 2, id] => id != 0 && id == ip6,
            _ => false,
        }
    }

    /// The same record with the numbers of other virtual routers, of IPv4 and of IPv6.
    #[must_use]
    pub(crate) fn with_virtual_routers(mut self, numbers: [u8; 2]) -> Self {
        self.virtual_routers = numbers;
        self
    }

    /// The same record with another MAC address.
    #[must_use]
    pub fn with_mac(mut self, mac: MacAddress) -> Self {
        self.mac = mac.0;
        self
    }

    /// The tags of frames sent by it, as they stand behind the addresses: none, or those of a sub-interface.
    #[inline(always)]
    pub fn tags(&self) -> &[u8] {
        match self.tags {
            [0, ..] => &[],
            [_, _, _, _, 0, ..] => self.tags.get(..4).unwrap_or_default(),
            _ => &self.tags,
        }
    }

    /// The same record with the tags of a sub-interface.
    #[must_use]
    pub(crate) fn with_tags(mut self, tags: [u8; 8]) -> Self {
        self.tags = tags;
        self
    }

    /// The same record of a sub-interface with what it shares with its port.
    #[must_use]
    pub(crate) fn following(mut self, port: &IfData, own_mtu: u16) -> Self {
        const SHARED: IfFlags = IfFlags(
            IfFlags::ETHERNET.0
                | IfFlags::TX_CHECKSUM.0
                | IfFlags::TX_GSO.0
                | IfFlags::FED.0
                | IfFlags::POINT_TO_POINT.0
                | IfFlags::EXTRA_MACS.0,
        );
        // A port that is down carries nothing: its sub-interfaces have no link.
        let linked = port.flags().all(IfFlags::LINK_UP.set(IfFlags::ADMIN_UP, true));
        let flags = self.flags().set(SHARED, false).0 | port.flags().0 & SHARED.0;
        self = self.with_flags(IfFlags(flags).set(IfFlags::LINK_UP, linked)).with_mac(port.mac());
        self.mtu = if own_mtu == 0 { port.mtu } else { own_mtu };
        (self.output_edge, self.arc_end_edge) = (port.output_edge, port.arc_end_edge);
        self.virtual_routers = port.virtual_routers;
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

    /// The superpath of its own frames. A port's frames that are to be sorted by their tags first go elsewhere.
    #[inline(always)]
    pub fn superpath(&self) -> Option<NodeIndex> {
        (self.superpath != 0).then(|| NodeIndex::from_number(self.superpath))
    }

    /// The same record with another superpath.
    #[must_use]
    pub(crate) fn with_superpath(mut self, superpath: Option<NodeIndex>) -> Self {
        self.superpath = superpath.map_or(0, NodeIndex::number);
        self
    }

    /// Whether it may carry packets.
    #[inline(always)]
    pub fn is_up(&self) -> bool {
        self.flags & IfFlags::ADMIN_UP.0 != 0
    }

    /// Whether frames without tags that it receives are routed: it is up, not in layer 2, and they are its own.
    #[inline(always)]
    pub fn is_routed(&self) -> bool {
        self.flags & IfFlags::ROUTED.0 != 0
    }

    /// Whether frames without tags that it receives are bridged or cross-connected: it is up, and they are its own.
    #[inline(always)]
    pub fn is_switched(&self) -> bool {
        self.flags & IfFlags::SWITCHED.0 != 0
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
    pub(crate) extra_macs: ExtraMacs,
}

impl IfTable {
    /// One interface; all zero when there is none of this index.
    #[inline(always)]
    pub fn get<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> &'g IfData {
        self.records.load(interface.0 as usize, guard)
    }

    /// Whether an interface takes frames for a MAC address that is not its own.
    #[cold]
    pub fn takes(&self, data: &IfData, mac: MacAddress, guard: Guard<'_>) -> bool {
        data.flags().has(IfFlags::EXTRA_MACS) && self.extra_macs.has(SwIfIndex(data.hardware), mac, guard)
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
