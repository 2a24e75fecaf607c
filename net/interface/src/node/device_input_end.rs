//! `device-input-arc-end`: after the last feature of `device-input`.
//! the last feature -> **device-input-arc-end** -> `ethernet-input` | `ip4-input` | a superpath

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};

use crate::IfTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Where the interface's frames would have gone without features.
    To(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no such interface
    NoInterface,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("rx: sw_if_index {rx}")]
pub struct Trace {
    rx: u32,
}

/// Sends a packet where its interface's frames go.
pub struct DeviceInputEnd {
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for DeviceInputEnd {
    const NAME: &'static str = "device-input-arc-end";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        match self.interfaces.get(rx, cx.guard()).device_input_end_edge {
            0 => Err(Error::NoInterface),
            edge => Ok(Next::To(Edge(edge))),
        }
    }
}
