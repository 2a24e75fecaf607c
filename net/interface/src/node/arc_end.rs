//! `interface-output-arc-end`: after the last output feature.
//! the last feature of `interface-output` -> **interface-output-arc-end** -> `<interface>-tx`

use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode};

use super::interface_output::{Error, Next, Trace};
use crate::IfTable;

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
        Next::by(self.interfaces.get(tx, cx.guard()).arc_end_edge)
    }
}
