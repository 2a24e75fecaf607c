//! `ethernet-input`: check that a frame is for this station, take its header off, pass it on by its type.
//! driver -> **ethernet-input** -> ip4-input | arp-input

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::{EtherType, EthernetHeader, MacAddress};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// IPv4.
    #[node("ip4-input")]
    Ip4,
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

/// Whether a frame to `dst` is for the station `mac`; group addresses are looked at by [`group`].
#[inline(always)]
fn is_for(dst: MacAddress, mac: MacAddress) -> bool {
    dst.0 == mac.0
}

/// A group address: for everybody, but nothing may be answered with an error.
#[cold]
fn group(pkt: &mut Packet<'_>, dst: MacAddress) -> Result<(), Error> {
    if dst.is_multicast() {
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.with(Flags::LINK_MULTICAST);
        return Ok(());
    }
    // A promiscuous interface takes other stations' frames in, but routing them would duplicate traffic.
    Err(Error::OtherStation)
}

impl PacketNode for EthernetInput {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = self.interfaces.get(pkt.rx(), cx.guard());
        let header = pkt.pull_header::<EthernetHeader>().ok_or(Error::TooShort)?;
        cx.trace(pkt, || Trace(header));
        if !interface.is_up() {
            return Err(Error::Down);
        }
        let dst = header.dst();
        if !is_for(dst, interface.mac()) {
            group(pkt, dst)?;
        }
        match header.ether_type() {
            EtherType::IP4 => Ok(Next::Ip4),
            other => rare(header, other),
        }
    }
}

/// Everything but IPv4.
#[cold]
fn rare(header: EthernetHeader, kind: EtherType) -> Result<Next, Error> {
    if header.src().is_multicast() {
        return Err(Error::GroupSource);
    }
    match kind {
        EtherType::ARP => Ok(Next::Arp),
        kind if kind.is_vlan() => Err(Error::Vlan),
        EtherType(n) if n < EtherType::MIN => Err(Error::Llc),
        _ => Err(Error::UnknownType),
    }
}
