//! `pg-input-mac-filter`: the part of an Ethernet card that lets frames for other stations pass by.
//! device-input -> **pg-input-mac-filter** -> the next feature or device-input-arc-end

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::{EthernetHeader, FromBytes, MacAddress};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature, or the end of the arc.
    To(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// frame is for another station
    Filtered,
    /// frame is shorter than an Ethernet header
    TooShort,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("for {dst}, interface {own}")]
pub struct Trace {
    dst: MacAddress,
    own: MacAddress,
}

/// Filters.
pub struct MacFilter {
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for MacFilter {
    const NAME: &'static str = "pg-input-mac-filter";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (header, _) = EthernetHeader::ref_from_prefix(pkt.data()).map_err(|_| Error::TooShort)?;
        let (dst, own) = (header.dst(), self.interfaces.get(pkt.rx(), cx.guard()).mac());
        cx.trace(pkt, || Trace { dst, own });
        // Which groups are wanted is the business of those who join them: all pass, broadcast too.
        if dst != own && !dst.is_multicast() {
            return Err(Error::Filtered);
        }
        Ok(Next::To(cx.next_feature(pkt)))
    }
}
