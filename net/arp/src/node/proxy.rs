//! `arp-proxy`: a request for an address that is not ours, on an interface that answers for others. RFC 1027.
//! arp-input -> **arp-proxy** -> arp-reply

use std::net::Ipv4Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::FibIndex;
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::ArpHeader;

use crate::control::ProxyTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is answered for.
    #[node("arp-reply")]
    Reply,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ARP packet is cut short
    TooShort,
    /// IP4 destination address is answered for by nobody
    #[counter("l3_dst_address_not_local")]
    Elsewhere,
    /// Proxy ARP replies
    #[counter("proxy_arp_replies_sent")]
    #[severity(info)]
    Answered,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}?")]
pub struct Trace {
    target: Ipv4Addr,
}

/// Knows for whom we answer.
pub(crate) struct ArpProxy {
    pub(crate) interfaces: IfTable,
    pub(crate) table: ProxyTable,
}

impl PacketNode for ArpProxy {
    const NAME: &'static str = "arp-proxy";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let target = pkt.header::<ArpHeader>().ok_or(Error::TooShort)?.target_ip4();
        cx.trace(pkt, || Trace { target });
        let fib = FibIndex(self.interfaces.get(pkt.rx(), cx.guard()).fib_ip4);
        if !self.table.answers(fib, target, cx.guard()) {
            return Err(Error::Elsewhere);
        }
        cx.count(Error::Answered, 1);
        Ok(Next::Reply)
    }
}
