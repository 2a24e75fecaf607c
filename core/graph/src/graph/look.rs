//! What operators ask a graph: traces, nodes, counters.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::edges::edges;
use super::{Graph, GraphError};
use crate::error_drop::DropTap;
use crate::handoff::RingInfo;
use crate::lane::FrameCounts;
use crate::ledger::DispatchLedger;
use crate::monitor::{BufferMoves, Monitoring};
use crate::node::{ErrorCounter, NodeIndex};
use crate::observer::{MakeObserver, ObservationId};
use crate::topology::{NodeInfo, NodeKind};
use crate::trace::Filter;
use crate::trace_filter::FilterFunctions;

/// A node, and what is known of it without a look at others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeBrief {
    /// Its number.
    pub index: NodeIndex,
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub kind: NodeKind,
}

impl Graph {
    /// Tells readers of the counters that some restarted just now, in seconds since the start.
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

    /// Functions that decide which packets are traced or captured.
    pub fn filters(&self) -> &FilterFunctions {
        &self.filters
    }

    /// Where dropped packets can be looked at.
    pub fn drop_tap(&self) -> &DropTap {
        &self.drop_tap
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

    /// Shows all nodes to `look`, by index: number, name and kind, which needs no look at others.
    pub fn each_node(&self, mut look: impl FnMut(NodeIndex, &str, NodeKind)) {
        let nodes = self.nodes.borrow();
        for (at, draft) in nodes.iter().enumerate().filter(|(_, d)| !d.deleted) {
            look(NodeIndex(at as u32), &draft.name, draft.kind);
        }
    }

    /// The node with the first name behind this one, so that a list can be made a few nodes at a time.
    pub fn node_after(&self, name: &str) -> Option<NodeBrief> {
        let after = (Bound::Excluded(name), Bound::Unbounded);
        let index = *self.by_name.borrow().range::<str, _>(after).next()?.1;
        self.node_at(index.at())
    }

    /// A node by its number; those that were deleted leave gaps.
    pub fn node_at(&self, number: usize) -> Option<NodeBrief> {
        let nodes = self.nodes.borrow();
        let draft = nodes.get(number).filter(|d| !d.deleted)?;
        Some(NodeBrief { index: NodeIndex(number as u32), name: Arc::clone(&draft.name), kind: draft.kind })
    }

    /// How many nodes there are, gaps among them.
    pub fn node_places(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// Where the edges of a node lead, by edge.
    pub fn next_nodes(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let nodes = self.nodes.borrow();
        nodes.get(node.at()).map(|draft| edges(&nodes, draft).iter().collect()).unwrap_or_default()
    }

    /// What each thread noted of its nodes, by thread; nothing of one that does not move.
    pub fn ledgers(&self) -> BTreeMap<usize, DispatchLedger> {
        self.gather(|worker| worker.lane.ledger.clone())
    }

    /// Begins to count buffers by node on every thread, or ends it; what was counted stays.
    ///
    /// # Errors
    /// A thread does not move.
    pub fn monitor_buffers(&self, switch: Monitoring) -> Result<(), GraphError> {
        let is_on = switch == Monitoring::On;
        self.on_every_thread(move |worker| worker.lane.monitor.count(is_on))?;
        self.monitoring.set(switch);
        Ok(())
    }

    /// Lets something look at every node that any thread runs, from now on. Threads that are started later make theirs, too.
    ///
    /// # Errors
    /// A thread does not move.
    pub fn observe_nodes(&self, make: MakeObserver) -> Result<ObservationId, GraphError> {
        let id = self.observations.borrow().keys().next_back().map_or(0, |last| last.0.wrapping_add(1));
        let id = ObservationId(id);
        let of = Arc::clone(&make);
        let made = self.on_every_thread(move |worker| {
            let observer = of(worker.thread());
            worker.lane.monitor.observe(|all| all.add(id, observer));
        });
        if made.is_err() {
            self.on_every_thread_at_last(move |worker| worker.lane.monitor.observe(|all| all.remove(id)));
        }
        made?;
        self.observations.borrow_mut().insert(id, make);
        Ok(id)
    }

    /// Ends an observation. A thread that does not move ends it when it moves again.
    pub fn end_observation(&self, id: ObservationId) {
        self.observations.borrow_mut().remove(&id);
        self.on_every_thread_at_last(move |worker| worker.lane.monitor.observe(|all| all.remove(id)));
    }

    /// Whether buffers are counted by node.
    pub fn monitoring(&self) -> Monitoring {
        self.monitoring.get()
    }

    /// Forgets what was counted of buffers.
    ///
    /// # Errors
    /// A thread does not move.
    pub fn clear_buffer_moves(&self) -> Result<(), GraphError> {
        self.on_every_thread(|worker| worker.lane.monitor.rows.clear())
    }

    /// What was counted of buffers, of all threads that move, by node.
    pub fn buffer_moves(&self) -> Vec<BufferMoves> {
        let mut all: Vec<BufferMoves> = Vec::new();
        for rows in self.gather(|worker| worker.lane.monitor.rows.clone()).into_values() {
            all.resize(all.len().max(rows.len()), BufferMoves::default());
            all.iter_mut().zip(&rows).for_each(|(sum, row)| sum.add(row));
        }
        all
    }

    /// How many frames each thread has; nothing of one that does not move.
    pub fn frame_counts(&self) -> BTreeMap<usize, FrameCounts> {
        self.gather(|worker| worker.lane.frame_counts())
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
        self.error_names.all().into_iter().map(|(node, counter)| (node.to_string(), counter)).collect()
    }

    /// An error counter by its number: node and counter.
    pub fn error_counter(&self, number: usize) -> Option<(Arc<str>, &'static ErrorCounter)> {
        self.error_names.get(number)
    }

    /// Whether packets were ever dropped for the reason of this number.
    pub fn is_drop_reason(&self, number: usize) -> bool {
        self.error_names.was_dropped(number)
    }

    /// Sum over all threads of one node's error counter, by the counter's name or description.
    pub fn error_count(&self, node: &str, what: &str) -> Option<u64> {
        let all = self.error_names.all();
        let at = all.iter().rposition(|(n, c)| **n == *node && (c.name == what || c.description == what))?;
        Some(self.graph_counters.errors.sum(at))
    }
}
