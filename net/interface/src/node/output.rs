//! `<interface>-output`: count, check that the interface is up, run its output features.
//! ip4-rewrite | interface-output -> **`<interface>-output`** -> `<interface>-tx` | features of `interface-output`
//!
//! All instances run the same code: it goes by the packet's sending interface.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};

use crate::IfTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The interface's `-tx` node, or a feature.
    To(Edge),
}

/// The instance's edge to its `-tx` node, the only one it has besides features.
const TX: Edge = Edge(1);

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// interface is down
    #[counter("interface_down")]
    Down,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("tx: sw_if_index {tx} bytes {bytes}")]
pub struct Trace {
    tx: u32,
    bytes: usize,
}

/// The code of all `-output` nodes.
pub struct Output {
    /// All interfaces.
    pub interfaces: IfTable,
    /// The arc of output features.
    pub arc: FeatureArc,
}

impl PacketNode for Output {
    const NAME: &'static str = "output";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (tx, bytes) = (pkt.tx(), pkt.len());
        if !self.interfaces.get(tx, cx.guard()).is_up() {
            return Err(Error::Down);
        }
        cx.count_tx(tx, bytes);
        cx.trace(pkt, || Trace { tx: tx.0, bytes });
        Ok(Next::To(cx.start_arc(&self.arc, tx, pkt).unwrap_or(TX)))
    }
}
