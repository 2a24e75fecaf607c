//! How far long runs of commands are.

use std::time::{Duration, Instant};

use shoal_module::cli::Sink;

/// How often progress is shown; a run that is over sooner says nothing.
const EVERY: Duration = Duration::from_secs(1);

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
