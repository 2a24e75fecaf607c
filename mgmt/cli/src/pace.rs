//! Long runs of commands: giving way to others, and saying how far they are.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_lite::future::yield_now;
use shoal_module::cli::Sink;

/// How long commands run on end. The main thread has other tasks, and without workers it forwards packets, too.
const SLICE: Duration = Duration::from_micros(250);
/// How often progress is shown; a run that is over sooner says nothing.
const EVERY: Duration = Duration::from_secs(1);

/// Gives way whenever a slice of time is used up.
#[derive(Debug)]
pub(crate) struct Pace {
    /// `None`: never.
    since: Cell<Option<Instant>>,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { since: Cell::new(Some(Instant::now())) }
    }
}

impl Pace {
    /// For callers that cannot wait.
    pub fn hurried() -> Self {
        Pace { since: Cell::new(None) }
    }

    /// Lets other tasks run, if it is time.
    pub async fn give_way(&self) {
        if self.since.get().is_some_and(|since| since.elapsed() >= SLICE) {
            yield_now().await;
            self.since.set(Some(Instant::now()));
        }
    }
}

/// How far a file of commands is.
pub(crate) struct Progress<'a> {
    file: &'a str,
    all: usize,
    done: usize,
    begun: Instant,
    shown: Instant,
}

impl<'a> Progress<'a> {
    pub fn new(file: &'a str, all: usize) -> Self {
        let now = Instant::now();
        Progress { file, all, done: 0, begun: now, shown: now }
    }

    /// One command more; says so now and then.
    pub fn step(&mut self, sink: &Sink) {
        self.done += 1;
        if !self.done.is_multiple_of(64) || self.shown.elapsed() < EVERY {
            return;
        }
        self.shown = Instant::now();
        let rate = self.done as f64 / self.begun.elapsed().as_secs_f64();
        let Progress { file, all, done, .. } = self;
        sink.progress(&format!("{file}: {done} of {all} commands, {rate:.0} a second"));
    }
}
