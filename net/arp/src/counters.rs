//! What is counted of ARP by interface, under VPP's names.

use std::io;

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_graph::counter::{Counters, Simple};
use shoal_neighbor::counters::begin;

/// Kinds of ARP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Who has the address?
    Request,
    /// I have it.
    Reply,
    /// I have it, by the way.
    Gratuitous,
}

/// One direction: requests, replies, gratuitous.
#[derive(Clone)]
struct Side([Simple; 3]);

/// `/net/arp/{rx,tx}/{requests,replies,gratuitous}`, by interface.
#[derive(Clone)]
pub struct ArpCounters {
    rx: Side,
    tx: Side,
}

impl ArpCounters {
    /// Enters the counters into the directory.
    ///
    /// # Errors
    /// The stats segment is full.
    pub fn new(counters: &Counters) -> io::Result<Self> {
        let one = |name: &str| counters.simple(&format!("/net/arp/{name}"), MAX_INTERFACES);
        let side = |s: &str| -> io::Result<Side> {
            let of = |kind: &str| one(&format!("{s}/{kind}"));
            Ok(Side([of("requests")?, of("replies")?, of("gratuitous")?]))
        };
        Ok(ArpCounters { rx: side("rx")?, tx: side("tx")? })
    }

    /// Begins to count for a new interface.
    pub fn begin(&self, interface: SwIfIndex) {
        self.rx.0.iter().chain(&self.tx.0).for_each(|counter| begin(counter, interface));
    }

    /// Counts a received packet.
    pub fn count_rx(&self, kind: Kind, thread: usize, interface: SwIfIndex) {
        self.rx.add(kind, thread, interface);
    }

    /// Counts a sent packet.
    pub fn count_tx(&self, kind: Kind, thread: usize, interface: SwIfIndex) {
        self.tx.add(kind, thread, interface);
    }
}

impl Side {
    fn add(&self, kind: Kind, thread: usize, interface: SwIfIndex) {
        let Side([requests, replies, gratuitous]) = self;
        let counter = match kind {
            Kind::Request => requests,
            Kind::Reply => replies,
            Kind::Gratuitous => gratuitous,
        };
        counter.add(thread, interface.0 as usize, 1);
    }
}
