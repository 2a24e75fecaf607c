//! `interface-output-arc-end`: after the last output feature.
//! the last feature of `interface-output` -> **interface-output-arc-end** -> `<interface>-tx`

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};

use crate::IfTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The interface's `-tx` node.
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
#[line("tx: sw_if_index {tx}")]
pub struct Trace {
    tx: u32,
}

/// Sends a packet to the transmit node of its sending interface.
pub struct ArcEnd {
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for ArcEnd {
    const NAME: &'static str = "interface-output-arc-end";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let tx = pkt.tx();
        cx.trace(pkt, || Trace { tx: tx.0 });
        match self.interfaces.get(tx, cx.guard()).arc_end_edge {
            0 => Err(Error::NoInterface),
            edge => Ok(Next::To(Edge(edge))),
        }
    }
}
