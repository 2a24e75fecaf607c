//! What operators ask a graph: traces, nodes, counters.

use std::collections::BTreeMap;

use super::{Draft, Graph, GraphError, edges};
use crate::handoff::RingInfo;
use crate::ledger::Ledger;
use crate::node::{ErrorCounter, NodeIndex};
use crate::topology::NodeInfo;
use crate::trace::Filter;

impl Graph {
    /// Tells readers of the counters that some began anew just now, in seconds since the start.
    pub fn mark_cleared(&self) {
        // No memory is needed for a number, so nothing can fail.
        if let Ok(number) = self.counters.scalar("/sys/last_stats_clear") {
            number.set(self.clock.now().seconds() as u64);
        }
    }

    /// Asks for a trace of the next `count` packets that enter by `node` and pass `filter`.
    ///
    /// # Errors
    /// The node is unknown or is not an input.
    pub fn trace_add(&self, node: NodeIndex, count: u32, filter: Option<Filter>) -> Result<(), GraphError> {
        let nodes = self.nodes.borrow();
        let draft = nodes.get(node.at()).ok_or_else(|| GraphError::NoNode(node.0.to_string(), None))?;
        draft.trace.ask(count, filter);
        Ok(())
    }

    /// Ends all requests for traces and forgets what was traced.
    pub fn trace_clear(&self) {
        self.nodes.borrow().iter().for_each(|n| n.trace.ask(0, None));
        self.traces.clear();
    }

    /// All nodes, by index.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let nodes = self.nodes.borrow();
        let name = |n: &NodeIndex| nodes.get(n.at()).map(|d| d.name.clone()).unwrap_or_default();
        let live = nodes.iter().enumerate().filter(|(_, d)| !d.deleted);
        live.map(|(at, d)| {
            let index = NodeIndex(at as u32);
            let leads_here = |p: &&Draft| !p.deleted && edges(&nodes, p).iter().skip(1).any(|e| *e == index);
            NodeInfo {
                index,
                name: d.name.clone(),
                kind: d.kind,
                next: edges(&nodes, d).iter().map(name).collect(),
                previous: nodes.iter().filter(leads_here).map(|p| p.name.clone()).collect(),
                errors: d.errors,
                error_base: d.error_base,
            }
        })
        .collect()
    }

    /// What each thread noted of its nodes, by thread; nothing of one that does not move.
    pub fn ledgers(&self) -> BTreeMap<usize, Ledger> {
        self.gather(|worker| worker.lane.ledger.clone())
    }

    /// All handoff rings, by the thread that hands over and the one that takes; none of a thread that does not move.
    pub fn handoff_rings(&self) -> Vec<RingInfo> {
        let all = self.gather(|worker| worker.lane.outbox.rings(worker.thread()));
        let mut rings: Vec<RingInfo> = all.into_values().flatten().collect();
        rings.sort_by_key(|ring| (ring.from, ring.to));
        rings
    }

    /// All error counters by their number: node and counter.
    pub fn error_counters(&self) -> Vec<(String, &'static ErrorCounter)> {
        self.error_names.all()
    }

    /// Sum over all threads of one node's error counter, by the counter's name or description.
    pub fn error_count(&self, node: &str, what: &str) -> Option<u64> {
        let all = self.error_names.all();
        let at = all.iter().rposition(|(n, c)| n == node && (c.name == what || c.description == what))?;
        Some(self.graph_counters.errors.sum(at))
    }
}
