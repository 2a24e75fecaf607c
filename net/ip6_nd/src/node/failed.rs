//! `ip6-discover-failed`: packets that waited for a neighbour in vain. RFC 4861 7.2.2.
//! the control plane -> **ip6-discover-failed** -> drop

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_neighbor::message::NotSent;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {}

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
        Err(match why {
            NotSent::Refused => Error::Refused,
            NotSent::Gone => Error::Gone,
            NotSent::Silent => Error::Silent,
        })
    }
}
