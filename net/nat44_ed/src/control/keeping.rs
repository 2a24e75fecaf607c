//! What threads keep, and what becomes of it when workers come and go.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NoError, NoNext, Shares, Stateful};

use crate::config::Config;
use crate::owner::Way;
use crate::sessions::{Record, Sessions, tick};
use crate::shared::Shared;

/// What threads keep, and how.
pub struct Keeping {
    shared: Arc<Shared>,
    /// Whether threads that come have sessions.
    on: AtomicBool,
    workers: Mutex<Vec<usize>>,
}

impl Keeping {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Keeping { shared, on: AtomicBool::new(false), workers: Mutex::new(vec![0]) }
    }

    pub(super) fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// The threads that forward.
    pub fn workers(&self) -> Vec<usize> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn share(&self, all: Vec<Record>) -> Shares<Sessions> {
        let config = self.shared.config.get();
        let mut parts: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
        for record in all {
            parts.entry(owner(&config, &record)).or_default().push(record);
        }
        parts.into_iter().map(|(thread, records)| (thread, Sessions::parcel(records))).collect()
    }
}

/// The thread that a session belongs to: the one its answers come to.
fn owner(config: &Config, record: &Record) -> usize {
    let session = &record.session;
    config.owner(session.outside.reversed(), session.protocol, Way::Out2in)
}

impl Stateful for Keeping {
    const NAME: &'static str = "nat44-ed-timer";
    type Next = NoNext;
    type Error = NoError;
    type State = Sessions;

    fn make(&self, thread: usize) -> Sessions {
        let mut sessions = Sessions::none();
        if self.on.load(Ordering::Relaxed)
            && let Err(e) = sessions.open(&self.shared.config.get(), Time(0))
        {
            tracing::warn!(thread, "nat44 keeps no sessions: {e}");
        }
        sessions
    }

    #[inline(always)]
    fn due(&self, sessions: &Sessions) -> Option<Time> {
        sessions.due()
    }

    fn expire(&self, sessions: &mut Sessions, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        if sessions.expire(&config.timeouts, cx.now()) > 0 {
            self.shared.counters.set_sessions(cx.thread(), sessions.len());
        }
    }

    fn workers(&self, workers: &[usize]) {
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers.to_vec();
        let mut config = Config::clone(&self.shared.config.get());
        config.workers = workers.to_vec();
        self.shared.config.replace(config);
    }

    fn reshard(&self, sessions: &mut Sessions, here: usize, _: &[usize]) -> Shares<Sessions> {
        let config = self.shared.config.get();
        let moved = sessions.take_out(|record| owner(&config, record) != here);
        self.shared.counters.set_sessions(here, sessions.len());
        self.share(moved)
    }

    fn give_up(&self, mut ended: Sessions, _: &[usize]) -> Shares<Sessions> {
        self.share(ended.take_out(|_| true))
    }

    fn adopt(&self, mine: &mut Sessions, mut other: Sessions, cx: &mut FrameCx<'_>) {
        for record in other.records() {
            mine.take_in(&record, tick(cx.now()));
        }
        self.shared.counters.set_sessions(cx.thread(), mine.len());
    }
}
