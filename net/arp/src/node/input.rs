//! `arp-input`: whether it is ARP for IPv4 over Ethernet at all, and whether the interface takes part in it. RFC 826.
//! ethernet-input -> **arp-input** -> arp-reply | arp-disabled

use shoal_buffer::Packet;
use shoal_derive::NextNodes;
use shoal_graph::{Cx, PacketNode};
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType};

pub use super::error::Error;
use crate::counters::{ArpCounters, Kind};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Sender and target.
    #[node("arp-reply")]
    Reply,
    /// There is no IPv4 here.
    #[node("arp-disabled")]
    Disabled,
}

/// What `show trace` says: the packet.
pub struct Trace(ArpHeader);

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Looks at the form of ARP packets.
pub(crate) struct ArpInput {
    pub(crate) interfaces: IfTable,
    pub(crate) counters: ArpCounters,
}

pub(super) fn kind_of(arp: &ArpHeader) -> Kind {
    match arp.opcode() {
        _ if arp.is_gratuitous() => Kind::Gratuitous,
        ArpOpcode::REQUEST => Kind::Request,
        _ => Kind::Reply,
    }
}

/// The fields that make it ARP for IPv4 over Ethernet.
fn check_form(pkt: &Packet<'_>) -> Result<ArpHeader, Error> {
    let arp = *pkt.header::<ArpHeader>().ok_or(Error::TooShort)?;
    let [l2_type, l3_type] = match pkt.data() {
        [a, b, c, d, ..] => [[*a, *b], [*c, *d]].map(u16::from_be_bytes),
        _ => return Err(Error::TooShort),
    };
    if l2_type != ArpHeader::L2_TYPE_ETHERNET {
        return Err(Error::L2Type);
    }
    if l3_type != EtherType::IP4.0 {
        return Err(Error::L3Type);
    }
    if !arp.is_valid() {
        return Err(Error::AddressSizes);
    }
    if !matches!(arp.opcode(), ArpOpcode::REQUEST | ArpOpcode::REPLY) {
        return Err(Error::Opcode);
    }
    let mac = arp.sender_mac();
    if mac.is_multicast() || mac.is_zero() {
        return Err(Error::SenderIsGroup);
    }
    if arp.target_ip4().is_unspecified() {
        return Err(Error::TargetUnset);
    }
    Ok(arp)
}

impl PacketNode for ArpInput {
    const NAME: &'static str = "arp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        if let Some(arp) = pkt.header::<ArpHeader>() {
            cx.trace(pkt, || Trace(*arp));
        }
        let arp = check_form(pkt)?;
        self.counters.count_rx(kind_of(&arp), cx.thread(), rx);
        let on = self.interfaces.get(rx, cx.guard()).flags().has(IfFlags::IP4);
        Ok(if on { Next::Reply } else { Next::Disabled })
    }
}
