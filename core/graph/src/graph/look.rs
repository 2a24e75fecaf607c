//! What operators ask a graph: traces, nodes, counters.

use std::collections::BTreeMap;

use super::edges::edges;
use super::{Graph, GraphError};
use crate::handoff::RingInfo;
use crate::ledger::Ledger;
use crate::node::{ErrorCounter, NodeIndex};
use crate::topology::{NodeInfo, NodeKind};
use crate::trace::Filter;
use crate::worker::Worker;

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
        let live = || nodes.iter().enumerate().filter(|(_, d)| !d.deleted);
        // By node: the names of those that lead there.
        let mut previous: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (at, draft) in live() {
            for next in edges(&nodes, draft).iter().skip(1) {
                if let Some(list) = previous.get_mut(next.at()).filter(|list| list.last() != Some(&at)) {
                    list.push(at);
                }
            }
        }
        let name = |at: usize| nodes.get(at).map(|d| d.name.to_string()).unwrap_or_default();
        live()
            .map(|(at, d)| NodeInfo {
                index: NodeIndex(at as u32),
                name: d.name.to_string(),
                kind: d.kind,
                next: edges(&nodes, d).iter().map(|next| name(next.at())).collect(),
                previous: previous.get(at).into_iter().flatten().map(|at| name(*at)).collect(),
                errors: d.errors,
                error_base: d.error_base,
            })
            .collect()
    }

    /// Shows all nodes to `look`, by index: number, name and kind, which is what can be said without looking at others.
    pub fn each_node(&self, mut look: impl FnMut(NodeIndex, &str, NodeKind)) {
        let nodes = self.nodes.borrow();
        for (at, draft) in nodes.iter().enumerate().filter(|(_, d)| !d.deleted) {
            look(NodeIndex(at as u32), &draft.name, draft.kind);
        }
    }

    /// What each thread noted of its nodes, by thread.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn ledgers(&self) -> Result<BTreeMap<usize, Ledger>, GraphError> {
        self.gather(|worker| worker.lane.ledger.clone())
    }

    /// All handoff rings, by the thread that hands over and the one that takes.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn handoff_rings(&self) -> Result<Vec<RingInfo>, GraphError> {
        let all = self.gather(|worker| worker.lane.outbox.rings(worker.thread()))?;
        let mut rings: Vec<RingInfo> = all.into_values().flatten().collect();
        rings.sort_by_key(|ring| (ring.from, ring.to));
        Ok(rings)
    }

    /// Asks every thread for something of its own.
    fn gather<T: Send + 'static>(
        &self,
        of: impl Fn(&Worker) -> T + Clone + Send + 'static,
    ) -> Result<BTreeMap<usize, T>, GraphError> {
        let (answer, answers) = std::sync::mpsc::channel();
        self.on_every_thread(move |worker| {
            let _ = answer.send((worker.thread(), of(worker)));
        })?;
        Ok(answers.try_iter().collect())
    }

    /// All error counters by their number: node and counter.
    pub fn error_counters(&self) -> Vec<(String, &'static ErrorCounter)> {
        self.error_names.all().into_iter().map(|(node, counter)| (node.to_string(), counter)).collect()
    }

    /// Sum over all threads of one node's error counter, by the counter's name or description.
    pub fn error_count(&self, node: &str, what: &str) -> Option<u64> {
        let all = self.error_names.all();
        let at = all.iter().rposition(|(n, c)| **n == *node && (c.name == what || c.description == what))?;
        Some(self.graph_counters.errors.sum(at))
    }
}
