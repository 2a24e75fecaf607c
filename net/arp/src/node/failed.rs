//! `ip4-arp-failed`: packets that waited for a neighbour in vain. RFC 1122, 2.3.2.2; RFC 1812, 5.2.7.1.
//! the control plane -> **ip4-arp-failed** -> ip4-icmp-error

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_ip4::IcmpError;
use shoal_neighbor::message::NotSent;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender is told that the host cannot be reached.
    #[node("ip4-icmp-error")]
    IcmpError,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// neighbour did not answer ARP
    #[severity(warn)]
    Silent,
    /// too many packets waiting for neighbours
    #[severity(warn)]
    Refused,
    /// interface went down while the packet waited
    Gone,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("not sent: {why:?}")]
pub struct Trace {
    why: NotSent,
}

/// Ends waiting.
pub(crate) struct ArpFailed;

impl PacketNode for ArpFailed {
    const NAME: &'static str = "ip4-arp-failed";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let why = NotSent::from_number(*pkt.scratch::<u32>());
        cx.trace(pkt, || Trace { why });
        match why {
            NotSent::Refused => Err(Error::Refused),
            NotSent::Gone => Err(Error::Gone),
            // Whoever sends from here sees the neighbour's silence for himself.
            NotSent::Silent if pkt.flags().has(Flags::LOCALLY_ORIGINATED) => Err(Error::Silent),
            NotSent::Silent => {
                cx.count(Error::Silent, 1);
                IcmpError::HOST.ask(pkt);
                Ok(Next::IcmpError)
            }
        }
    }
}
