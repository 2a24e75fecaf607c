//! What nodes and control plane share, and what threads keep.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::clock::Time;
use shoal_graph::counter::{Counters, Simple};
use shoal_graph::{FrameCx, NoError, NoNext, Shares, Stateful};
use shoal_infra::{Guard, Published};
use shoal_reassembly::L4;

use crate::config::Config;
use crate::sessions::{Record, Sessions};

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

/// What threads keep, and how.
pub struct Keeping {
    shared: Arc<Shared>,
    /// Whether threads that come have sessions.
    on: AtomicBool,
    workers: Mutex<Vec<usize>>,
}

impl Keeping {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Keeping { shared, on: AtomicBool::new(false), workers: Mutex::new(vec![0]) }
    }

    pub(crate) fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// The threads that forward.
    pub(crate) fn workers(&self) -> Vec<usize> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn share(&self, all: Vec<Record>) -> Shares<Sessions> {
        let config = self.shared.config.get();
        let mut parts: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
        for record in all {
            parts.entry(config.worker(record.flow.host)).or_default().push(record);
        }
        parts.into_iter().map(|(thread, records)| (thread, Sessions::parcel(records))).collect()
    }
}

impl Stateful for Keeping {
    const NAME: &'static str = "det44-expire-walk";
    type Next = NoNext;
    type Error = NoError;
    type State = Sessions;

    fn make(&self, thread: usize) -> Sessions {
        let mut sessions = Sessions::none();
        if self.on.load(Ordering::Relaxed)
            && let Err(e) = sessions.open(self.shared.config.get().timeouts, Time(0))
        {
            tracing::warn!(thread, "det44 keeps no sessions: {e}");
        }
        sessions
    }

    #[inline(always)]
    fn due(&self, sessions: &Sessions) -> Option<Time> {
        sessions.due()
    }

    fn expire(&self, sessions: &mut Sessions, cx: &mut FrameCx<'_>) {
        if sessions.expire(cx.now()) > 0 {
            self.shared.set_count(cx.thread(), sessions.len());
        }
    }

    fn workers(&self, workers: &[usize]) {
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers.to_vec();
        let mut config = Config::clone(&self.shared.config.get());
        config.workers = workers.to_vec();
        self.shared.config.replace(config);
    }

    /// The ports of a host are its own on any thread, so that no session is lost.
    fn reshard(&self, sessions: &mut Sessions, here: usize, _: &[usize]) -> Shares<Sessions> {
        let config = self.shared.config.get();
        let moved = sessions.take_out(Time(0), |flow| config.worker(flow.host) != here);
        self.shared.set_count(here, sessions.len());
        self.share(moved)
    }

    fn give_up(&self, mut ended: Sessions, _: &[usize]) -> Shares<Sessions> {
        self.share(ended.take_out(Time(0), |_| true))
    }

    fn adopt(&self, mine: &mut Sessions, other: Sessions, cx: &mut FrameCx<'_>) {
        mine.take_in(other, cx.now());
        self.shared.set_count(cx.thread(), mine.len());
    }
}
