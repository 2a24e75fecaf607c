//! What is counted of ARP by interface, under VPP's names.

use std::io;

use shoal_buffer::SwIfIndex;
use shoal_graph::counter::{Counters, Simple};

/// Most interfaces counted.
const MAX_INTERFACES: usize = 1 << 16;

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

/// `/net/arp/{rx,tx}/{requests,replies,gratuitous}` `/net/arp/held/{sent,failed,refused}` and
/// `/net/arp/refused`, by interface.
#[derive(Clone)]
pub struct ArpCounters {
    rx: Side,
    tx: Side,
    /// Packets sent on after their neighbour had answered.
    pub held_sent: Simple,
    /// Packets whose neighbour did not answer.
    pub held_failed: Simple,
    /// Stations that were not entered because the table is full.
    pub refused: Simple,
    /// Packets that had no room to wait.
    pub held_refused: Simple,
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
        Ok(ArpCounters {
            rx: side("rx")?,
            tx: side("tx")?,
            held_sent: one("held/sent")?,
            held_failed: one("held/failed")?,
            refused: one("refused")?,
            held_refused: one("held/refused")?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Simple> {
        self.rx.0.iter().chain(&self.tx.0).chain([
            &self.held_sent,
            &self.held_failed,
            &self.held_refused,
            &self.refused,
        ])
    }

    /// Begins to count for a new interface.
    pub fn begin(&self, interface: SwIfIndex) {
        let at = interface.0 as usize;
        self.all().for_each(|counter| {
            counter.zero(at);
            counter.ensure(at + 1);
        });
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
