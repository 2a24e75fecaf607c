//! What nodes and control plane share.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::clock::Time;
use shoal_graph::counter::{Counters, Simple};
use shoal_graph::process::Sender;
use shoal_infra::{Guard, Published};
use shoal_nat44::counters::set_gauge;
use shoal_nat44::export::ExportGate;
use shoal_nat44::session_events::{Exhausted, ExhaustedLimit};
use shoal_reassembly::L4;

use crate::config::Config;
use crate::sessions::MOST_OF_HOST;

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
    export: ExportGate,
    limit: ExhaustedLimit,
    tell: Sender<Exhausted>,
}

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        (fib, adjacencies): (FibTables, AdjTable),
        words: SlotKey<L4>,
        (export, tell): (ExportGate, Sender<Exhausted>),
    ) -> io::Result<Arc<Self>> {
        let sessions = counters.simple("/det44/total-sessions", 1)?;
        sessions.ensure(1);
        let config = Published::new(Config::default());
        let limit = ExhaustedLimit::default();
        Ok(Arc::new(Shared { config, fib, adjacencies, words, sessions, export, limit, tell }))
    }

    /// A thread has so many sessions.
    pub fn set_count(&self, thread: usize, sessions: usize) {
        set_gauge(&self.sessions, thread, sessions);
    }

    /// Has the main thread tell collectors that a host has as many sessions as it may have: once a second.
    pub fn tell_full(&self, host: Ipv4Addr, now: Time) {
        let what = Exhausted::OfUser { most: MOST_OF_HOST, host: host.to_bits() };
        if self.export.is_open() && self.limit.passes(what, now) {
            let _ = self.tell.try_send(what);
        }
    }

    /// Whether an address is this router's in a table.
    pub fn is_own(&self, table: u32, address: u32, guard: Guard<'_>) -> bool {
        let found = self.fib.lookup(FibIndex(table), address, guard);
        self.adjacencies.get(found, guard).kind() == AdjKind::Local
    }
}
