//! How threads tell the main thread what happens to sessions, for those who log it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_syslog::{Gate, Severity};

use crate::export::ExportGate;

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
    /// Bindings of a worker.
    Bindings {
        /// There may be so many.
        most: u32,
    },
    /// Sessions of a host.
    OfUser {
        /// There may be so many.
        most: u32,
        /// The host.
        host: u32,
    },
}

/// Lets each kind of exhaustion pass once a second.
#[derive(Debug)]
pub struct ExhaustedLimit([AtomicU64; 4]);

impl Default for ExhaustedLimit {
    fn default() -> Self {
        ExhaustedLimit([const { AtomicU64::new(u64::MAX) }; 4])
    }
}

impl ExhaustedLimit {
    /// Whether it passes.
    pub fn passes(&self, what: Exhausted, now: Time) -> bool {
        let [ports, sessions, bindings, of_user] = &self.0;
        let last = match what {
            Exhausted::Ports => ports,
            Exhausted::Sessions { .. } => sessions,
            Exhausted::Bindings { .. } => bindings,
            Exhausted::OfUser { .. } => of_user,
        };
        let second = now.0 / 1_000_000_000;
        last.swap(second, Ordering::Relaxed) != second
    }
}

/// The way to the main thread. One that is behind misses some.
pub struct NewsChannel<T> {
    syslog: Gate,
    export: ExportGate,
    /// Whether anything else gets events.
    listens: AtomicBool,
    limit: ExhaustedLimit,
    tell: Sender<T>,
}

impl<T: From<Exhausted>> NewsChannel<T> {
    /// Told by `tell` what the gates of syslog and of flow records let pass, or what is asked for.
    pub fn new((syslog, export): (Gate, ExportGate), tell: Sender<T>) -> Self {
        NewsChannel {
            syslog,
            export,
            listens: AtomicBool::new(false),
            limit: ExhaustedLimit::default(),
            tell,
        }
    }

    /// Whether anything but syslog and flow records gets events.
    pub fn set_listens(&self, on: bool) {
        self.listens.store(on, Ordering::Relaxed);
    }

    /// Whether anything gets events of sessions.
    pub fn are_wanted(&self) -> bool {
        self.listens.load(Ordering::Relaxed)
            || self.export.is_open()
            || self.syslog.passes(Severity::Informational)
    }

    /// Tells something; whether there was room.
    pub fn send(&self, told: T) -> bool {
        self.tell.try_send(told).is_ok()
    }

    /// Tells that there was not enough of something: once a second.
    pub fn exhausted(&self, what: Exhausted, now: Time) {
        if self.export.is_open() && self.limit.passes(what, now) {
            self.send(T::from(what));
        }
    }
}
