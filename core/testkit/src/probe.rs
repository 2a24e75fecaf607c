//! A way into the graph at any node, with a trace from the start.

use shoal_buffer::Buffer;
use shoal_graph::{FrameCx, Graph, NoError, NoNext, NodeIndex, QueueId, RxQueue};

/// The input node that traces of this crate's packets begin with.
pub(crate) const NAME: &str = "testkit-probe";

/// Puts one packet into a node, traced.
struct Probe {
    node: NodeIndex,
    packet: Option<Buffer>,
}

impl RxQueue for Probe {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let Some(mut buffer) = self.packet.take() else { return 0 };
        let mut pkt = cx.cache().packet(&mut buffer);
        cx.begin_trace(&mut pkt, NAME);
        cx.send_to(self.node, buffer);
        1
    }

    fn is_parked(&self) -> bool {
        self.packet.is_none()
    }
}

/// Makes a queue of the main thread that sends `packet` into `node` in the next round, and asks for its trace.
pub(crate) fn add(graph: &Graph, node: NodeIndex, packet: Buffer) -> QueueId {
    let probe = graph.node(NAME).or_else(|_| graph.add_input::<NoNext, NoError>(NAME));
    let probe = probe.unwrap_or_else(|e| panic!("{e}"));
    graph.trace_add(probe, 1, None).unwrap_or_else(|e| panic!("{e}"));
    let queue = Probe { node, packet: Some(packet) };
    graph.add_queue(NAME, 0, probe, Some(0), Box::new(queue)).unwrap_or_else(|e| panic!("{e}"))
}
