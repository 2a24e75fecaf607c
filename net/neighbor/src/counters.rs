//! What is counted of packets that wait, by interface.

use std::io;

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_graph::counter::{Counters, Simple};

/// `/net/<protocol>/held/{sent,failed,refused}` and `/net/<protocol>/refused`, by interface.
#[derive(Clone)]
pub struct HeldCounters {
    /// Packets sent on after their neighbour had answered.
    pub sent: Simple,
    /// Packets whose neighbour did not answer.
    pub failed: Simple,
    /// Packets that had no room to wait.
    pub refused: Simple,
    /// Stations that were not entered because the table is full.
    pub full: Simple,
}

impl HeldCounters {
    /// Enters the counters of a protocol into the directory.
    ///
    /// # Errors
    /// The stats segment is full.
    pub fn new(counters: &Counters, protocol: &str) -> io::Result<Self> {
        let one = |name: &str| counters.simple(&format!("/net/{protocol}/{name}"), MAX_INTERFACES);
        Ok(HeldCounters {
            sent: one("held/sent")?,
            failed: one("held/failed")?,
            full: one("refused")?,
            refused: one("held/refused")?,
        })
    }

    /// Begins to count for a new interface.
    pub fn begin(&self, interface: SwIfIndex) {
        for counter in [&self.sent, &self.failed, &self.refused, &self.full] {
            begin(counter, interface);
        }
    }
}

/// Begins to count for a new interface.
pub fn begin(counter: &Simple, interface: SwIfIndex) {
    let at = interface.0 as usize;
    counter.zero(at);
    counter.ensure(at + 1);
}
