//! `interface-output`: for packets that name only their sending interface.
//! anything made by this router -> **interface-output** -> `<interface>-output`
//!
//! `interface-output-arc-end` differs in the edge it takes, and shares the code here.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};

use crate::IfTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A node of the sending interface.
    To(Edge),
}

impl Next {
    /// By an edge of [`IfData`](crate::IfData), which is 0 where there is no interface.
    pub(super) fn by(edge: u16) -> Result<Next, Error> {
        if edge == 0 { Err(Error::NoInterface) } else { Ok(Next::To(Edge(edge))) }
    }
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
    pub(super) tx: u32,
}

/// Sends a packet to the output node of its sending interface.
pub struct InterfaceOutput {
    /// All interfaces.
    pub interfaces: IfTable,
}

impl PacketNode for InterfaceOutput {
    const NAME: &'static str = "interface-output";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let tx = pkt.tx();
        cx.trace(pkt, || Trace { tx: tx.0 });
        Next::by(self.interfaces.get(tx, cx.guard()).output_edge)
    }
}
