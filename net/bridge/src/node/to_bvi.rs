//! `l2-to-bvi`: a frame for this router leaves the bridge and is routed, as received by the BVI.
//! l2-fwd | l2-flood -> **l2-to-bvi** -> ip4-input | ip6-input | the node registered for the type
//!
//! Its ways out are those of `ethernet-input`.

use std::sync::Arc;

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_ethernet::EthernetInput;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_wire::{EtherType, EthernetHeader};

/// Where a packet goes next. The same as [`shoal_ethernet::node::input::Next`], whose edges it shares.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// IPv4.
    #[node("ip4-input")]
    Ip4,
    /// IPv6.
    #[node("ip6-input")]
    Ip6,
    /// The node registered for the type.
    To(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// BVI packet with unhandled ethertype
    #[counter("bvi_ethertype")]
    Type,
    /// frame is shorter than an Ethernet header
    TooShort,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("l2-to-bvi: sw_if_index {bvi}")]
pub struct Trace {
    bvi: u32,
}

/// Turns a frame of a bridge into one that its BVI has received.
#[inline(always)]
pub(crate) fn turn(pkt: &mut Packet<'_>, bvi: SwIfIndex) {
    pkt.meta_mut().received_by(bvi);
}

/// Takes the header off.
pub struct ToBvi {
    /// Which node gets which type.
    pub ethernet: Arc<EthernetInput>,
}

impl PacketNode for ToBvi {
    const NAME: &'static str = "l2-to-bvi";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let bvi = pkt.rx();
        cx.trace(pkt, || Trace { bvi: bvi.0 });
        cx.counters().rx.add(cx.thread(), bvi.0 as usize, 1, pkt.len() as u64);
        let header = pkt.pull_header::<EthernetHeader>().ok_or(Error::TooShort)?;
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.without(Flags::LOCALLY_ORIGINATED);
        if header.dst().is_multicast() {
            meta.flags = meta.flags.with(Flags::LINK_MULTICAST).with(Flags::FLOODED);
        }
        match header.ether_type() {
            EtherType::IP4 => Ok(Next::Ip4),
            EtherType::IP6 => Ok(Next::Ip6),
            kind if kind.0 < EtherType::MIN => Err(Error::Type),
            kind => self.ethernet.types.find(kind, cx.guard()).map(Next::To).ok_or(Error::Type),
        }
    }
}
