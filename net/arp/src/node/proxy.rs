//! `arp-proxy`: a request for an address that is not ours, on an interface that answers for others. RFC 1027.
//! arp-reply -> **arp-proxy** -> interface-output

use std::net::Ipv4Addr;

use shoal_buffer::Packet;
use shoal_derive::{NextNodes, TraceLine};
use shoal_fib::FibIndex;
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::ArpHeader;

use super::answer::Answer;
pub use super::error::Error;
use crate::control::ProxyTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The reply, back out of the interface the request came in by.
    #[node("interface-output")]
    Output,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}?")]
pub struct Trace {
    target: Ipv4Addr,
}

/// Knows the addresses for which we answer.
pub(crate) struct ArpProxy {
    pub(crate) interfaces: IfTable,
    pub(crate) table: ProxyTable,
    pub(crate) answer: Answer,
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
            return Err(Error::TargetElsewhere);
        }
        self.answer.write(pkt, None, cx.thread(), cx.guard())?;
        cx.count(Error::ProxyReplied, 1);
        Ok(Next::Output)
    }
}
