//! `<interface>-output`: count, run the interface's output features (one of which drops when it is down).
//! ip4-rewrite | interface-output -> **`<interface>-output`** -> `<interface>-tx` | features of `interface-output`
//!
//! All instances run the same code: it goes by the packet's sending interface.

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::superpath::Plain;
use shoal_graph::{Cx, Edge, FeatureArc, NoError, PacketNode};
use shoal_infra::Guard;

use crate::IfTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The interface's `-tx` node, or a feature.
    To(Edge),
}

/// The instance's edge to its `-tx` node, the only one it has besides features.
const TX: Edge = Edge(1);

/// What `show trace` says.
#[derive(TraceLine)]
#[line("tx: sw_if_index {tx} bytes {bytes}")]
pub struct Trace {
    tx: u32,
    bytes: usize,
}

/// The code of all `-output` nodes.
#[derive(Clone)]
pub struct Output {
    /// The arc of output features.
    pub arc: FeatureArc,
    /// All interfaces. Packets of sub-interfaces pass the node of their port, and count for both.
    pub interfaces: IfTable,
}

impl PacketNode for Output {
    const NAME: &'static str = "output";
    type Next = Next;
    type Error = NoError;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        let (tx, bytes) = (pkt.tx(), pkt.len());
        cx.trace(pkt, || Trace { tx: tx.0, bytes });
        self.count(tx, 1, bytes as u64, cx);
        Ok(Next::To(cx.start_arc(&self.arc, tx, pkt).unwrap_or(TX)))
    }
}

impl Plain for Output {
    type Facts<'g> = ();
    const COUNTS_BYTES: bool = true;

    #[inline(always)]
    fn interface(pkt: &Packet<'_>) -> SwIfIndex {
        pkt.tx()
    }

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> Option<()> {
        (!self.arc.any(interface)).then_some(())
    }

    #[inline(always)]
    fn plain(&self, (): (), _: &mut Packet<'_>) -> bool {
        true
    }

    fn count(&self, interface: SwIfIndex, packets: u64, bytes: u64, cx: &Cx<'_, Self>) {
        cx.counters().tx.add(cx.thread(), interface.0 as usize, packets, bytes);
        let port = self.interfaces.get(interface, cx.guard()).hardware;
        // 0: the interface has gone, and local0 sends nothing.
        if port != interface.0 && port != 0 {
            cx.counters().tx.add(cx.thread(), port as usize, packets, bytes);
        }
    }
}
