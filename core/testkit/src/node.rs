//! One packet through one node, and where it came out.

use std::rc::Rc;

use shoal_buffer::Packet;
use shoal_graph::trace::Record;

use crate::{Router, probe};

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The nodes it passed and the trace line of each, in order. A node that says nothing of its packets is not seen.
    pub steps: Vec<(String, String)>,
    /// Counters that went up, as `node: text`.
    pub counted: Vec<String>,
    node: String,
}

impl Passed {
    /// The first node with a trace line behind the one asked for; `None` when the packet ended there.
    pub fn next(&self) -> Option<&str> {
        self.steps.iter().map(|(node, _)| node.as_str()).find(|node| *node != self.node)
    }

    /// The trace line of a node for the packet.
    pub fn said(&self, node: &str) -> Option<&str> {
        self.steps.iter().find(|(n, _)| n == node).map(|(_, text)| text.as_str())
    }

    /// Whether the packet was dropped.
    pub fn dropped(&self) -> bool {
        self.steps.iter().any(|(node, _)| node == "error-drop")
    }
}

/// Puts a packet straight into a node, with metadata as `prepare` leaves it, and follows it until it rests.
/// Earlier traces are forgotten.
pub fn run(
    router: &mut Router,
    node: &str,
    bytes: &[u8],
    mut prepare: impl FnMut(&mut Packet<'_>),
) -> Passed {
    let graph = Rc::clone(router.graph());
    let index = graph.node(node).unwrap_or_else(|e| panic!("{e}"));
    let before = router.errors();
    graph.trace_clear();
    let buffer = {
        let mut main = graph.main();
        let mut buffer = main.cache().alloc_data(bytes).expect("the pool is not empty");
        prepare(&mut main.cache().packet(&mut buffer));
        buffer
    };
    let queue = probe::add(&graph, index, buffer);
    router.run();
    drop(graph.remove_queue(queue).unwrap_or_else(|e| panic!("{e}")));
    let said = |r: &Record| (graph.node_name(r.node), r.to_string());
    let steps: Vec<_> = graph.traces().with(0, |packets| {
        let records = packets.first().map(|p| p.records.as_slice()).unwrap_or_default();
        records.iter().map(said).filter(|(name, _)| name != probe::NAME).collect()
    });
    graph.trace_clear();
    let counted = router.errors().into_iter().filter(|e| !before.contains(e)).map(|(name, _)| name).collect();
    Passed { steps, counted, node: node.to_owned() }
}
