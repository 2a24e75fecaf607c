//! One thread's rows of what is counted at each call of a node.

use super::Row;
use crate::lane::GraphCounters;
use crate::node::NodeIndex;

/// A thread's rows of `/sys/node/calls`, `/sys/node/vectors` and `/sys/node/clocks`. They are found once, since they are
/// written at each call, and a short frame costs little more than its calls.
pub(crate) struct NodeRows {
    calls: Option<Row>,
    vectors: Option<Row>,
    clocks: Option<Row>,
}

impl NodeRows {
    /// The rows of a thread. What it counts is lost if it has none.
    pub(crate) fn new(counters: &GraphCounters, thread: usize) -> Self {
        let GraphCounters { calls, vectors, clocks, .. } = counters;
        let [calls, vectors, clocks] = [calls, vectors, clocks].map(|counter| counter.row(thread).cloned());
        NodeRows { calls, vectors, clocks }
    }

    /// A node was called, and had nothing to do.
    #[inline(always)]
    pub(crate) fn called(&self, node: NodeIndex) {
        add(self.calls.as_ref(), node, 1);
    }

    /// A node was called, and took so many clocks for so many packets.
    #[inline(always)]
    pub(crate) fn worked(&self, node: NodeIndex, vectors: u64, clocks: u64) {
        self.called(node);
        add(self.vectors.as_ref(), node, vectors);
        add(self.clocks.as_ref(), node, clocks);
    }
}

#[inline(always)]
fn add(row: Option<&Row>, node: NodeIndex, n: u64) {
    if let Some(row) = row {
        row.add(node.at(), n);
    }
}
