//! What threads keep, and what becomes of it when workers come and go.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NoError, NoNext, Shares, Stateful};

use crate::config::Config;
use crate::sessions::{Record, Sessions};
use crate::shared::Shared;

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
        // The port of a session whose host moves is another thread's to give out, unless both move together.
        for record in all.into_iter().filter(|record| is_whole(&config, record)) {
            parts.entry(config.of_inside(&record.inside)).or_default().push(record);
        }
        parts.into_iter().map(|(thread, records)| (thread, Sessions::parcel(records))).collect()
    }
}

/// Whether both sides of a session lead to one thread.
fn is_whole(config: &Config, record: &Record) -> bool {
    config.of_inside(&record.inside) == config.of_outside(&record.outside)
}

impl Stateful for Keeping {
    const NAME: &'static str = "nat64-expire-worker-walk";
    type Next = NoNext;
    type Error = NoError;
    type State = Sessions;

    fn make(&self, thread: usize) -> Sessions {
        let mut sessions = Sessions::none();
        if self.on.load(Ordering::Relaxed)
            && let Err(e) = sessions.open(&self.shared.config.get(), Time(0))
        {
            tracing::warn!(thread, "nat64 keeps no sessions: {e}");
        }
        sessions
    }

    #[inline(always)]
    fn due(&self, sessions: &Sessions) -> Option<Time> {
        sessions.due()
    }

    fn expire(&self, sessions: &mut Sessions, cx: &mut FrameCx<'_>) {
        let gone = sessions.expire(cx.now());
        if !gone.is_empty() {
            self.shared.count(cx.thread(), sessions);
        }
        for record in gone {
            self.shared.tell(false, record);
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
        let stays = |record: &Record| is_whole(&config, record) && config.of_inside(&record.inside) == here;
        let moved = sessions.take_out(|record| !stays(record));
        self.shared.count(here, sessions);
        self.share(moved)
    }

    fn give_up(&self, mut ended: Sessions, _: &[usize]) -> Shares<Sessions> {
        self.share(ended.take_out(|_| true))
    }

    fn adopt(&self, mine: &mut Sessions, other: Sessions, cx: &mut FrameCx<'_>) {
        mine.take_in(other, self.shared.config.load(cx.guard()), cx.now());
        self.shared.count(cx.thread(), mine);
    }
}
