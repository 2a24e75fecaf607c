//! `bond-input`: frames that members receive are their bond's.
//! device-input of a member -> **bond-input** -> device-input of the bond | device-input-arc-end | the next feature
//!
//! What is between a member and the other end of its own link stays the member's: LLDP, CDP, and slow protocols such as
//! LACP.

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_infra::TwinTable;
use shoal_wire::{EtherType, EthernetHeader, MacAddress};

use crate::data::MemberData;

/// Where CDP and its like are sent.
const CDP: MacAddress = MacAddress([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc]);

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Where frames of the bond go.
    #[node("device-input-arc-end")]
    End,
    /// The features of the bond itself.
    #[node("device-input")]
    Features,
    /// The next feature of the member.
    To(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// traffic received on passive interface
    #[counter("traffic received on passive interface")]
    Passive,
    /// pass through (CDP, LLDP, slow protocols)
    #[counter("pass through (CDP, LLDP, slow protocols)")]
    #[severity(info)]
    PassThrough,
}

/// What `show trace` says.
pub struct Trace {
    src: MacAddress,
    dst: MacAddress,
    from: SwIfIndex,
    to: SwIfIndex,
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Trace { src, dst, from, to } = self;
        write!(f, "src {src}, dst {dst}, sw_if_index {from} -> {to}")
    }
}

/// Gives frames to bonds.
pub struct BondInput {
    /// Which interface is whose member.
    pub members: TwinTable<MemberData>,
    /// The arc of received frames.
    pub arc: FeatureArc,
}

/// Whether a frame is for the member itself.
fn is_for_member(header: &EthernetHeader) -> bool {
    match header.ether_type() {
        EtherType::SLOW_PROTOCOLS | EtherType::LLDP => true,
        EtherType(length) => length < EtherType::MIN && header.dst() == CDP,
    }
}

impl PacketNode for BondInput {
    const NAME: &'static str = "bond-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let from = pkt.rx();
        let member = self.members.load(from.0 as usize, cx.guard());
        let header = pkt.header::<EthernetHeader>().copied();
        let own = member.bond == 0 || header.as_ref().is_some_and(is_for_member);
        let to = if own { from } else { SwIfIndex(member.bond) };
        if let Some(header) = header {
            cx.trace(pkt, || Trace { src: header.src(), dst: header.dst(), from, to });
        }
        if own {
            cx.count(Error::PassThrough, 1);
            return Ok(Next::To(cx.next_feature(pkt)));
        }
        if member.waits != 0 {
            return Err(Error::Passive);
        }
        pkt.meta_mut().rx = to;
        cx.counters().rx.add(cx.thread(), to.0 as usize, 1, pkt.len() as u64);
        Ok(if self.arc.any(to) { Next::Features } else { Next::End })
    }
}
