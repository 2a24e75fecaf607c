//! How threads tell the main thread what happens to sessions, for those who log it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_syslog::{Gate, Severity};

/// What there was not enough of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exhausted {
    /// Ports of shared addresses.
    Ports,
    /// Sessions of a worker.
    Sessions {
        /// There may be so many.
        most: u32,
    },
}

/// The way to the main thread. One that is behind misses some.
pub struct NewsChannel<T> {
    gate: Gate,
    /// Whether anything but syslog gets events.
    listens: AtomicBool,
    /// The second in which each kind of exhaustion was reported last.
    exhausted: [AtomicU64; 2],
    tell: Sender<T>,
}

impl<T: From<Exhausted>> NewsChannel<T> {
    /// Told by `tell` what syslog's gate lets pass, or what is asked for.
    pub fn new(gate: Gate, tell: Sender<T>) -> Self {
        NewsChannel {
            gate,
            listens: AtomicBool::new(false),
            exhausted: [const { AtomicU64::new(u64::MAX) }; 2],
            tell,
        }
    }

    /// Whether anything but syslog gets events.
    pub fn set_listens(&self, on: bool) {
        self.listens.store(on, Ordering::Relaxed);
    }

    /// Whether anything gets events of sessions.
    pub fn are_wanted(&self) -> bool {
        self.listens.load(Ordering::Relaxed) || self.gate.passes(Severity::Informational)
    }

    /// Tells something; whether there was room.
    pub fn send(&self, told: T) -> bool {
        self.tell.try_send(told).is_ok()
    }

    /// Tells that there was not enough of something: once a second.
    pub fn exhausted(&self, what: Exhausted, now: Time) {
        if !self.listens.load(Ordering::Relaxed) {
            return;
        }
        let [ports, sessions] = &self.exhausted;
        let last = if what == Exhausted::Ports { ports } else { sessions };
        let second = now.0 / 1_000_000_000;
        if last.swap(second, Ordering::Relaxed) != second {
            self.send(T::from(what));
        }
    }
}
