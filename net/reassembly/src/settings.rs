//! Limits and times: what the control plane sets and nodes read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::table::{Limits, WaitFor};

/// Limits and times of one kind of reassembly for one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How long a datagram may take, in milliseconds.
    pub timeout_ms: u32,
    /// Datagrams at a time on each thread; 0: none.
    pub max_reassemblies: u32,
    /// Fragments of one datagram: for shallow virtual reassembly those that wait for the first.
    pub max_fragments: u32,
    /// How often is looked for datagrams whose time is over, in milliseconds.
    pub expire_walk_interval_ms: u32,
}

impl Settings {
    /// Full reassembly at first. RFC 1122, 3.3.2 and RFC 8200, 4.5: 60 seconds.
    pub const FULL: Settings = Settings {
        timeout_ms: 60_000,
        max_reassemblies: 1024,
        max_fragments: 128,
        expire_walk_interval_ms: 1000,
    };
    /// Shallow virtual reassembly at first. Nothing waits but fragments that overtook the first one.
    pub const SHALLOW: Settings = Settings {
        timeout_ms: 5_000,
        max_reassemblies: 1024,
        max_fragments: 16,
        expire_walk_interval_ms: 1000,
    };

    /// Smallest and largest timeout.
    pub const TIMEOUT_MS: (u32, u32) = (0, 3_600_000);
    /// Fewest and most datagrams on a thread.
    pub const REASSEMBLIES: (u32, u32) = (0, 65_536);
    /// Fewest and most fragments of a datagram: what IPv4's least MTU makes of the longest one.
    pub const FRAGMENTS: (u32, u32) = (2, 1366);
    /// Shortest and longest time between two looks.
    pub const INTERVAL_MS: (u32, u32) = (10, 60_000);
}

/// The settings where nodes read them. Clones are the same.
#[derive(Clone, Debug)]
pub struct Shared(Arc<[AtomicU32; 4]>, Arc<AtomicBool>);

impl Shared {
    /// With these settings.
    pub fn new(settings: Settings) -> Self {
        let shared = Shared(Arc::new([const { AtomicU32::new(0) }; 4]), Arc::default());
        shared.set(settings);
        shared
    }

    /// Other ones, from now on.
    pub fn set(&self, settings: Settings) {
        let Settings { timeout_ms, max_reassemblies, max_fragments, expire_walk_interval_ms } = settings;
        let values = [timeout_ms, max_reassemblies, max_fragments, expire_walk_interval_ms];
        self.0.iter().zip(values).for_each(|(cell, value)| cell.store(value, Ordering::Relaxed));
    }

    /// What they are.
    pub fn get(&self) -> Settings {
        let [timeout_ms, max_reassemblies, max_fragments, expire_walk_interval_ms] = &*self.0;
        let of = |cell: &AtomicU32| cell.load(Ordering::Relaxed);
        Settings {
            timeout_ms: of(timeout_ms),
            max_reassemblies: of(max_reassemblies),
            max_fragments: of(max_fragments),
            expire_walk_interval_ms: of(expire_walk_interval_ms),
        }
    }

    /// What fragments wait for.
    pub fn until(&self) -> WaitFor {
        if self.1.load(Ordering::Relaxed) { WaitFor::Last } else { WaitFor::First }
    }

    /// What they wait for from now on.
    pub fn wait(&self, until: WaitFor) {
        self.1.store(until == WaitFor::Last, Ordering::Relaxed);
    }

    /// The limits of a table.
    pub fn limits(&self) -> Limits {
        let Settings { max_reassemblies, max_fragments, .. } = self.get();
        Limits { datagrams: max_reassemblies as usize, fragments: max_fragments, until: self.until() }
    }

    /// How long a datagram may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.get().timeout_ms))
    }
}
