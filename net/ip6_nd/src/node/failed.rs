//! `ip6-discover-failed`: packets that waited for a neighbour in vain. RFC 4861 7.2.2; RFC 4443 3.1.
//! the control plane -> **ip6-discover-failed** -> ip6-icmp-error

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_ip6::IcmpError;
use shoal_neighbor::message::NotSent;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender is told that the address cannot be reached.
    #[node("ip6-icmp-error")]
    IcmpError,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// neighbour did not answer solicitations
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
pub(crate) struct Failed;

impl PacketNode for Failed {
    const NAME: &'static str = "ip6-discover-failed";
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
                IcmpError::ADDRESS.ask(pkt);
                Ok(Next::IcmpError)
            }
        }
    }
}
