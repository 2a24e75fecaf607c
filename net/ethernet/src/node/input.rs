//! `ethernet-input`: check that a frame is for this station, take its header off, pass it on by its type.
//! driver -> **ethernet-input** -> ip4-input | ip6-input | arp-input

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::superpath::{Plain, PlainSecond};
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Guard;
use shoal_interface::{IfData, IfTable, SwIfIndex};
use shoal_wire::{EtherType, EthernetHeader};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// IPv4.
    #[node("ip4-input")]
    Ip4,
    /// IPv6.
    #[node("ip6-input")]
    Ip6,
    /// ARP.
    #[node("arp-input")]
    Arp,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// frame is shorter than an Ethernet header
    TooShort,
    /// interface is down
    #[counter("down")]
    Down,
    /// l3 mac mismatch
    #[counter("l3_mac_mismatch")]
    OtherStation,
    /// unknown vlan
    #[counter("unknown_vlan")]
    Vlan,
    /// unknown ethernet type
    UnknownType,
    /// 802.3 frame without a type
    Llc,
    /// source mac is a group address
    GroupSource,
}

/// What `show trace` says: the header.
pub struct Trace(EthernetHeader);

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Needs to know the stations' addresses.
pub struct EthernetInput {
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for EthernetInput {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        if let Some(header) = pkt.header::<EthernetHeader>() {
            cx.trace(pkt, || Trace(*header));
        }
        match self.facts(pkt.rx(), cx.guard()) {
            Some(interface) if self.plain(interface, pkt) => Ok(Next::Ip4),
            Some(interface) if self.plain_second(interface, pkt) => Ok(Next::Ip6),
            _ => self.rest(pkt.reborrow(), cx.guard()),
        }
    }
}

impl Plain for EthernetInput {
    type Facts<'g> = &'g IfData;
    const PULLS: usize = EthernetHeader::LEN;

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g IfData> {
        Some(self.interfaces.get(interface, guard)).filter(|data| data.is_up())
    }

    #[inline(always)]
    fn plain(&self, interface: &IfData, pkt: &mut Packet<'_>) -> bool {
        carries(EtherType::IP4, interface, pkt)
    }
}

impl PlainSecond for EthernetInput {
    #[inline(always)]
    fn plain_second(&self, interface: &IfData, pkt: &mut Packet<'_>) -> bool {
        carries(EtherType::IP6, interface, pkt)
    }

    #[inline(always)]
    fn is_second(pkt: &Packet<'_>) -> bool {
        pkt.header::<EthernetHeader>().is_some_and(|header| header.ether_type() == EtherType::IP6)
    }
}

/// Whether a frame is for this station only and of a type; then its header is off.
#[inline(always)]
fn carries(kind: EtherType, interface: &IfData, pkt: &mut Packet<'_>) -> bool {
    let Some(header) = pkt.header::<EthernetHeader>() else { return false };
    header.is_to(interface.mac_bytes())
        && header.ether_type() == kind
        && pkt.pull(EthernetHeader::LEN).is_some()
}

impl EthernetInput {
    /// Everything but IP to this station.
    #[cold]
    fn rest(&self, mut pkt: Packet<'_>, guard: Guard<'_>) -> Result<Next, Error> {
        let interface = self.interfaces.get(pkt.rx(), guard);
        let header = pkt.pull_header::<EthernetHeader>().ok_or(Error::TooShort)?;
        if !interface.is_up() {
            return Err(Error::Down);
        }
        let (dst, kind) = (header.dst(), header.ether_type());
        if dst.is_multicast() {
            // For everybody, but nothing may be answered with an error.
            let meta = pkt.meta_mut();
            meta.flags = meta.flags.with(Flags::LINK_MULTICAST);
        } else if dst != interface.mac() {
            // A promiscuous interface takes other stations' frames in, but routing them would duplicate traffic.
            return Err(Error::OtherStation);
        }
        match kind {
            EtherType::IP4 => Ok(Next::Ip4),
            EtherType::IP6 => Ok(Next::Ip6),
            _ if header.src().is_multicast() => Err(Error::GroupSource),
            EtherType::ARP => Ok(Next::Arp),
            kind if kind.is_vlan() => Err(Error::Vlan),
            EtherType(n) if n < EtherType::MIN => Err(Error::Llc),
            _ => Err(Error::UnknownType),
        }
    }
}
