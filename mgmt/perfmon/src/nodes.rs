//! Counting around every node that a thread runs.

use std::sync::{Arc, Mutex, PoisonError};

use shoal_graph::{NodeIndex, Observed, Observer};

use crate::counters::{Counters, Values, between};

/// What one node has done on one thread, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeRow {
    /// How often it ran.
    pub calls: u64,
    /// Packets it took or received.
    pub packets: u64,
    /// What the bundle's counters counted.
    pub values: [u64; crate::counters::MOST],
}

/// Rows by node, of one thread.
#[derive(Default)]
pub(crate) struct Rows(Mutex<Vec<NodeRow>>);

impl Rows {
    pub(crate) fn get(&self) -> Vec<NodeRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn add(&self, node: NodeIndex, packets: usize, values: Values) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = node.number() as usize;
        if rows.len() <= at {
            rows.resize(at + 1, NodeRow::default());
        }
        if let Some(row) = rows.get_mut(at) {
            row.calls += 1;
            row.packets += packets as u64;
            row.values.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// One thread's counting. It looks nowhere where the counters could not be opened.
pub(crate) struct Counting {
    pub(crate) counters: Option<Counters>,
    pub(crate) rows: Arc<Rows>,
    before: Values,
}

impl Counting {
    pub(crate) fn new(counters: Option<Counters>, rows: Arc<Rows>) -> Self {
        Counting { counters, rows, before: Values::default() }
    }
}

impl Observer for Counting {
    fn before(&mut self, _: NodeIndex, _: &str, _: Option<Observed<'_>>) {
        if let Some(counters) = &mut self.counters {
            self.before = counters.read();
        }
    }

    fn after(&mut self, node: NodeIndex, _: &str, packets: usize) {
        let Some(counters) = &mut self.counters else { return };
        let values = between(self.before, counters.read());
        // Queues are looked at all the time, mostly in vain.
        if packets > 0 || values != Values::default() {
            self.rows.add(node, packets, values);
        }
    }
}
