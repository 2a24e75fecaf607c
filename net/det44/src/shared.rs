//! What nodes and control plane share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::counter::{Counters, Simple};
use shoal_infra::{Guard, Published};
use shoal_reassembly::L4;

use crate::config::Config;

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Forwarding tables.
    pub fib: FibTables,
    /// Adjacencies.
    pub adjacencies: AdjTable,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
    /// Sessions of each thread, at place 0.
    sessions: Simple,
}

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        (fib, adjacencies): (FibTables, AdjTable),
        words: SlotKey<L4>,
    ) -> io::Result<Arc<Self>> {
        let sessions = counters.simple("/det44/total-sessions", 1)?;
        sessions.ensure(1);
        let config = Published::new(Config::default());
        Ok(Arc::new(Shared { config, fib, adjacencies, words, sessions }))
    }

    /// A thread has so many sessions.
    pub fn set_count(&self, thread: usize, sessions: usize) {
        if let Some(cell) = self.sessions.row(thread).and_then(|row| row.get(0)) {
            cell.store(sessions as u64, Ordering::Relaxed);
        }
    }

    /// Whether an address is this router's in a table.
    pub fn is_own(&self, table: u32, address: u32, guard: Guard<'_>) -> bool {
        let found = self.fib.lookup(FibIndex(table), address, guard);
        self.adjacencies.get(found, guard).kind() == AdjKind::Local
    }
}
