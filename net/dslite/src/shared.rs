//! What nodes and control plane share.

use std::io;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_adj::AdjTable;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::counter::{Counters, Simple};
use shoal_graph::process::Sender;
use shoal_infra::{Guard, Published};
use shoal_interface::IfTable;
use shoal_syslog::{Gate, Severity};

use crate::config::Config;
use crate::sessions::{Record, Sessions};

/// A session began (`true`) or ended.
pub type SessionEvent = (bool, Record);

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Interfaces.
    pub interfaces: IfTable,
    fib: FibTables,
    adjacencies: AdjTable,
    /// Sessions of each thread.
    sessions: Simple,
    /// B4s of each thread that have some.
    b4s: Simple,
    gate: Gate,
    tell: Sender<SessionEvent>,
}

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        (interfaces, fib, adjacencies): (IfTable, FibTables, AdjTable),
        gate: Gate,
        tell: Sender<SessionEvent>,
    ) -> io::Result<Arc<Self>> {
        let counter = |name: &str| {
            let counter = counters.simple(&format!("/dslite/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, io::Error>(counter)
        };
        Ok(Arc::new(Shared {
            config: Published::new(Config::default()),
            interfaces,
            fib,
            adjacencies,
            sessions: counter("total-sessions")?,
            b4s: counter("total-b4s")?,
            gate,
            tell,
        }))
    }

    /// Bytes of the longest packet that gets to a B4 in one piece.
    pub fn mtu(&self, (table, b4): (FibIndex, Ipv6Addr), guard: Guard<'_>) -> u16 {
        self.fib.way_mtu_ip6((table, b4.to_bits()), &self.adjacencies, guard)
    }

    /// A thread's numbers have changed.
    pub fn count(&self, thread: usize, sessions: &Sessions) {
        self.set_counts(thread, sessions.len(), sessions.b4s());
    }

    /// A thread has so many sessions, of so many B4s.
    pub fn set_counts(&self, thread: usize, sessions: usize, b4s: usize) {
        for (counter, value) in [(&self.sessions, sessions), (&self.b4s, b4s)] {
            if let Some(cell) = counter.row(thread).and_then(|row| row.get(0)) {
                cell.store(value as u64, Ordering::Relaxed);
            }
        }
    }

    /// Has the main thread log a session, if sessions are logged. A main thread that is behind misses some.
    pub fn tell(&self, begins: bool, record: Record) {
        if self.gate.passes(Severity::Informational) {
            let _ = self.tell.try_send((begins, record));
        }
    }
}
