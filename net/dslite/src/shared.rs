//! What nodes and control plane share.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_graph::clock::Time;
use shoal_graph::counter::{Counters, Simple};
use shoal_graph::process::Sender;
use shoal_graph::{FrameCx, NoError, NoNext, Shares, Stateful};
use shoal_infra::Published;
use shoal_syslog::{Gate, Severity};

use crate::config::Config;
use crate::sessions::{Record, Sessions};

/// A session began (`true`) or ended.
pub type Told = (bool, Record);

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Sessions of each thread.
    sessions: Simple,
    /// B4s of each thread that have some.
    b4s: Simple,
    gate: Gate,
    tell: Sender<Told>,
}

impl Shared {
    pub(crate) fn new(counters: &Counters, gate: Gate, tell: Sender<Told>) -> io::Result<Arc<Self>> {
        let counter = |name: &str| {
            let counter = counters.simple(&format!("/dslite/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, io::Error>(counter)
        };
        Ok(Arc::new(Shared {
            config: Published::new(Config::default()),
            sessions: counter("total-sessions")?,
            b4s: counter("total-b4s")?,
            gate,
            tell,
        }))
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

/// What threads keep.
pub struct Keeping {
    shared: Arc<Shared>,
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
            parts.entry(config.of_b4(record.inside.b4)).or_default().push(record);
        }
        parts.into_iter().map(|(thread, records)| (thread, Sessions::parcel(records))).collect()
    }
}

impl Stateful for Keeping {
    const NAME: &'static str = "dslite-timer";
    type Next = NoNext;
    type Error = NoError;
    type State = Sessions;

    fn make(&self, thread: usize) -> Sessions {
        let mut sessions = Sessions::none();
        if self.on.load(Ordering::Relaxed)
            && let Err(e) = sessions.open(Time(0))
        {
            tracing::warn!(thread, "dslite keeps no sessions: {e}");
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

    /// The ports of a session whose thread changes are another thread's, so only sessions whose port is the new thread's go on.
    fn reshard(&self, sessions: &mut Sessions, here: usize, _: &[usize]) -> Shares<Sessions> {
        let config = self.shared.config.get();
        let stays = |record: &Record| {
            config.of_b4(record.inside.b4) == here && config.of_port(record.outside.port) == here
        };
        let moved = sessions.take_out(|record| !stays(record));
        self.shared.count(here, sessions);
        let fits = |record: &Record| config.of_b4(record.inside.b4) == config.of_port(record.outside.port);
        self.share(moved.into_iter().filter(fits).collect())
    }

    fn give_up(&self, mut ended: Sessions, _: &[usize]) -> Shares<Sessions> {
        let config = self.shared.config.get();
        let fits = |record: &Record| config.of_b4(record.inside.b4) == config.of_port(record.outside.port);
        self.share(ended.take_out(|_| true).into_iter().filter(fits).collect())
    }

    fn adopt(&self, mine: &mut Sessions, other: Sessions, cx: &mut FrameCx<'_>) {
        mine.take_in(other, cx.now());
        self.shared.count(cx.thread(), mine);
    }
}
