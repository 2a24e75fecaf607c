//! What is counted of neighbour discovery by interface, under VPP's names.

use std::io;

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_graph::counter::{Counters, Simple};
use shoal_neighbor::counters::begin;

/// Kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Who has the address?
    NeighbourSolicitation,
    /// I have it.
    NeighbourAdvertisement,
    /// Which routers are here?
    RouterSolicitation,
    /// I am one.
    RouterAdvertisement,
    /// Which groups I listen to.
    ListenerReport,
    /// I have it, by the way.
    UnsolicitedAdvertisement,
}

/// VPP has the first two and the last; advertisements without the solicited flag are gratuitous.
const NAMES: [&str; 6] = ["requests", "replies", "rs", "ra", "mld-report", "gratuitous"];

/// `/net/ip6-nd/{rx,tx}/{requests,replies,gratuitous,rs,ra,mld-report}` by interface.
#[derive(Clone)]
pub struct NdCounters {
    rx: [Simple; 6],
    tx: [Simple; 6],
}

impl NdCounters {
    /// Enters the counters into the directory.
    ///
    /// # Errors
    /// The stats segment is full.
    pub fn new(counters: &Counters) -> io::Result<Self> {
        let one =
            |side: &str, kind: &str| counters.simple(&format!("/net/ip6-nd/{side}/{kind}"), MAX_INTERFACES);
        let side = |s: &str| -> io::Result<[Simple; 6]> {
            let [ns, na, rs, ra, report, unsolicited] = NAMES;
            Ok([one(s, ns)?, one(s, na)?, one(s, rs)?, one(s, ra)?, one(s, report)?, one(s, unsolicited)?])
        };
        Ok(NdCounters { rx: side("rx")?, tx: side("tx")? })
    }

    /// Begins to count for a new interface.
    pub fn begin(&self, interface: SwIfIndex) {
        self.rx.iter().chain(&self.tx).for_each(|counter| begin(counter, interface));
    }

    /// Counts a received message.
    pub fn count_rx(&self, kind: Kind, thread: usize, interface: SwIfIndex) {
        if let Some(counter) = self.rx.get(kind as usize) {
            counter.add(thread, interface.0 as usize, 1);
        }
    }

    /// Counts a sent message.
    pub fn count_tx(&self, kind: Kind, thread: usize, interface: SwIfIndex) {
        if let Some(counter) = self.tx.get(kind as usize) {
            counter.add(thread, interface.0 as usize, 1);
        }
    }

    /// How many came in and went out on an interface.
    pub fn sum(&self, kind: Kind, interface: SwIfIndex) -> (u64, u64) {
        let of = |side: &[Simple; 6]| side.get(kind as usize).map_or(0, |c| c.sum(interface.0 as usize));
        (of(&self.rx), of(&self.tx))
    }
}
