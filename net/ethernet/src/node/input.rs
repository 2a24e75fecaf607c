//! `ethernet-input`: check that a frame is for this station, take its header off, pass it on by its type.
//! driver -> **ethernet-input** -> ip4-input | ip6-input | the node registered for the type | l2-input
//!
//! A frame with tags goes on as one without, as if the sub-interface that takes it had received it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::superpath::{Plain, PlainSecond};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_infra::Guard;
use shoal_interface::{IfData, IfFlags, IfTable, SwIfIndex};
use shoal_wire::{EtherType, EthernetHeader};

use super::tagged::is_tagged;
use crate::llc::LlcTable;
use crate::types::TypeTable;
use crate::vlan::{VlanTable, is_outer};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// IPv4.
    #[node("ip4-input")]
    Ip4,
    /// IPv6.
    #[node("ip6-input")]
    Ip6,
    /// The node registered for the type, or `l2-input`.
    To(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no error
    #[counter("no error")]
    #[severity(info)]
    None,
    /// llc length > packet length
    #[counter("llc length > packet length")]
    LlcLength,
    /// unknown ethernet type
    #[counter("unknown ethernet type")]
    UnknownType,
    /// unknown vlan
    #[counter("unknown vlan")]
    Vlan,
    /// l3 mac mismatch
    #[counter("l3 mac mismatch")]
    OtherStation,
    /// subinterface down
    #[counter("subinterface down")]
    SubDown,
    /// frame is shorter than an Ethernet header
    TooShort,
    /// interface is down
    #[counter("down")]
    Down,
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

/// Needs to know the stations' addresses, the tags of sub-interfaces, and the owner of each frame type.
pub struct EthernetInput {
    /// All interfaces.
    pub interfaces: IfTable,
    /// Which sub-interface takes which tags.
    pub vlans: VlanTable,
    /// Which node gets which type.
    pub types: TypeTable,
    /// The edge to `l2-input`; 0, a drop, where there is no layer 2.
    pub l2: Arc<AtomicU16>,
    /// Which node gets 802.3 frames.
    pub llc: LlcTable,
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
            None if self.interfaces.get(pkt.rx(), cx.guard()).is_switched() && is_untagged(pkt) => {
                Ok(self.to_l2())
            }
            _ if is_tagged(pkt) => self.tagged(pkt.reborrow(), &cx.aside()),
            _ => self.rest(pkt.reborrow(), &cx.aside()),
        }
    }
}

impl Plain for EthernetInput {
    type Facts<'g> = &'g IfData;
    const PULLS: usize = EthernetHeader::LEN;

    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g IfData> {
        Some(self.interfaces.get(interface, guard)).filter(|data| data.is_routed())
    }

    #[inline(always)]
    fn facts_alone<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<&'g IfData> {
        Some(self.interfaces.get(interface, guard)).filter(|data| data.is_routed() || data.is_switched())
    }

    #[inline(always)]
    fn plain(&self, interface: &IfData, pkt: &mut Packet<'_>) -> bool {
        carries(EtherType::IP4, interface, pkt)
    }

    #[inline(always)]
    fn edge(&self, interface: &IfData, pkt: &mut Packet<'_>) -> Option<Edge> {
        if interface.is_switched() {
            return is_untagged(pkt).then(|| Edge(self.l2.load(Ordering::Relaxed)));
        }
        self.either(interface, pkt)
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
pub(super) fn carries(kind: EtherType, interface: &IfData, pkt: &mut Packet<'_>) -> bool {
    let Some(header) = pkt.header::<EthernetHeader>() else { return false };
    (header.is_to(interface.mac_bytes()) || interface.is_virtual(header.dst()))
        && header.ether_type() == kind
        && pkt.pull(EthernetHeader::LEN).is_some()
}

/// Whether a frame has no tags.
#[inline(always)]
fn is_untagged(pkt: &Packet<'_>) -> bool {
    pkt.header::<EthernetHeader>().is_some_and(|header| !is_outer(header.ether_type()))
}

impl EthernetInput {
    #[inline(always)]
    fn to_l2(&self) -> Next {
        Next::To(Edge(self.l2.load(Ordering::Relaxed)))
    }

    /// Everything but untagged IP to this station, and frames without tags in layer 2.
    #[cold]
    fn rest(&self, pkt: Packet<'_>, cx: &Cx<'_, Self>) -> Result<Next, Error> {
        let port = self.interfaces.get(pkt.rx(), cx.guard());
        pkt.header::<EthernetHeader>().ok_or(Error::TooShort)?;
        if !port.is_up() {
            return Err(Error::Down);
        }
        let (rx, sub) = (pkt.rx(), self.vlans.untagged(pkt.rx()));
        if sub == rx {
            return self.take(pkt, port, cx);
        }
        self.take_by(sub, pkt, 0, cx)
    }

    /// A frame whose next two bytes behind the addresses are its type.
    pub(super) fn take(
        &self,
        mut pkt: Packet<'_>,
        interface: &IfData,
        cx: &Cx<'_, Self>,
    ) -> Result<Next, Error> {
        if interface.flags().has(IfFlags::L2) {
            return Ok(self.to_l2());
        }
        let header = pkt.pull_header::<EthernetHeader>().ok_or(Error::TooShort)?;
        let (dst, kind) = (header.dst(), header.ether_type());
        if dst.is_multicast() {
            // For everybody, but nothing may be answered with an error.
            let meta = pkt.meta_mut();
            meta.flags = meta.flags.with(Flags::LINK_MULTICAST);
        } else if dst != interface.mac() && !self.interfaces.takes(interface, dst, cx.guard()) {
            // A promiscuous interface takes other stations' frames in, but routing them would duplicate traffic.
            return Err(Error::OtherStation);
        }
        match kind {
            EtherType::IP4 => return Ok(Next::Ip4),
            EtherType::IP6 => return Ok(Next::Ip6),
            _ if header.src().is_multicast() => return Err(Error::GroupSource),
            EtherType(n) if n < EtherType::MIN && usize::from(n) > pkt.len() => return Err(Error::LlcLength),
            EtherType(n) if n < EtherType::MIN => {
                return self.llc.find(pkt.data()).map(Next::To).ok_or(Error::Llc);
            }
            _ => {}
        }
        self.types.find(kind, cx.guard()).map(Next::To).ok_or(Error::UnknownType)
    }
}
