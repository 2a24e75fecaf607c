//! `arp-reply`: turn a request into its reply, where it lies.
//! arp-input -> **arp-reply** -> interface-output

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::{ArpHeader, EtherType, EthernetHeader, MacAddress};

use crate::counters::{ArpCounters, Kind};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Back out of the interface it came in by.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ARP replies sent
    #[severity(info)]
    RepliesSent,
    /// ARP packet is cut short
    TooShort,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("to {to} on sw_if_index {tx}")]
pub struct Trace {
    to: MacAddress,
    tx: u32,
}

/// Bytes of ARP in the shortest Ethernet frame. What a request carries behind them is none of the reply's.
const LONGEST: usize = 60 - EthernetHeader::LEN;

/// Answers for us.
pub(crate) struct ArpReply {
    pub(crate) interfaces: IfTable,
    pub(crate) counters: ArpCounters,
}

impl PacketNode for ArpReply {
    const NAME: &'static str = "arp-reply";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let ours = self.interfaces.get(rx, cx.guard()).mac();
        let arp = pkt.header_mut::<ArpHeader>().ok_or(Error::TooShort)?;
        let to = arp.sender_mac();
        arp.make_reply(ours);
        pkt.truncate(pkt.len().min(LONGEST)).ok_or(Error::TooShort)?;
        pkt.push(EthernetHeader::LEN).ok_or(Error::TooShort)?;
        *pkt.header_mut::<EthernetHeader>().ok_or(Error::TooShort)? =
            EthernetHeader::new(ours, to, EtherType::ARP);
        let meta = pkt.meta_mut();
        meta.tx = rx;
        meta.flags = meta.flags.without(Flags::LINK_MULTICAST).with(Flags::LOCALLY_ORIGINATED);
        self.counters.count_tx(Kind::Reply, cx.thread(), rx);
        cx.count(Error::RepliesSent, 1);
        cx.trace(pkt, || Trace { to, tx: rx.0 });
        Ok(Next::Output)
    }
}
