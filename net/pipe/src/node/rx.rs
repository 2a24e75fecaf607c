//! `pipe-rx`: a frame comes in by an end of a pipe.
//! pipeN-tx -> **pipe-rx** -> ethernet-input | l2-input

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::{EtherType, EthernetHeader, MacAddress};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The end is routed.
    #[node("ethernet-input")]
    Ethernet,
    /// It is in layer 2, whatever tags there are.
    #[node("l2-input")]
    L2,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// end of the pipe is down
    #[counter("down")]
    Down,
    /// frame has passed too many pipes
    #[counter("looped")]
    Looped,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("rx: sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Takes in.
pub struct PipeRx {
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for PipeRx {
    const NAME: &'static str = "pipe-rx";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        let data = self.interfaces.get(rx, cx.guard());
        if !data.is_up() {
            return Err(Error::Down);
        }
        if data.flags().has(IfFlags::L2) {
            // A frame that is switched has no TTL that would end its way.
            let flags = pkt.flags().received_again().ok_or(Error::Looped)?;
            pkt.meta_mut().flags = flags;
            return Ok(Next::L2);
        }
        // What the other end routes here is for this station: there is no other one on the link.
        if let Some(header) = pkt.header_mut::<EthernetHeader>()
            && header.dst() == MacAddress::BROADCAST
            && [EtherType::IP4, EtherType::IP6].contains(&header.ether_type())
        {
            header.set_dst(data.mac());
        }
        Ok(Next::Ethernet)
    }
}
