//! What the kernel counts of AF_XDP sockets (`XDP_STATISTICS`), by interface, in the stats segment.

use std::io;
use std::sync::Arc;

use shoal_graph::counter::{Counters, Simple};
use shoal_interface::SwIfIndex;

use crate::XskStats;

/// Interfaces that counters have room for: as many as the router has.
const MOST: usize = 1 << 16;

/// The words behind `/af_xdp/`, in the order of [`XdpCounters::add`].
const NAMES: [&str; 6] =
    ["rx-dropped", "rx-invalid", "tx-invalid", "rx-ring-full", "rx-fill-ring-empty", "tx-ring-empty"];

/// `/af_xdp/*`.
#[derive(Clone)]
pub(crate) struct XdpCounters(Arc<[Simple]>);

fn words(stats: &XskStats) -> [u64; 6] {
    [
        stats.rx_dropped,
        stats.rx_invalid_descs,
        stats.tx_invalid_descs,
        stats.rx_ring_full,
        stats.rx_fill_ring_empty_descs,
        stats.tx_ring_empty_descs,
    ]
}

impl XdpCounters {
    /// Enters the counters into the directory.
    ///
    /// # Errors
    /// The stats segment is full.
    pub(crate) fn new(counters: &Counters) -> io::Result<Self> {
        let all: io::Result<Vec<_>> =
            NAMES.iter().map(|name| counters.simple(&format!("/af_xdp/{name}"), MOST)).collect();
        Ok(XdpCounters(all?.into()))
    }

    /// Begins to count for a new interface.
    pub(crate) fn begin(&self, interface: SwIfIndex) {
        let at = interface.0 as usize;
        for counter in &*self.0 {
            counter.zero(at);
            counter.ensure(at + 1);
        }
    }

    /// Adds what has come since `before`.
    pub(crate) fn add(&self, thread: usize, interface: SwIfIndex, before: &XskStats, now: &XskStats) {
        for ((counter, before), now) in self.0.iter().zip(words(before)).zip(words(now)) {
            if now > before {
                counter.add(thread, interface.0 as usize, now - before);
            }
        }
    }
}
