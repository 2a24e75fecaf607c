//! What is counted by interface: messages of a protocol, and packets that wait for a neighbour.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

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

/// Kinds of messages of a protocol that asks for neighbours.
pub trait MessageKind: Copy + 'static {
    /// The folder of its counters: `/net/<protocol>`.
    const PROTOCOL: &'static str;
    /// The counters' names.
    const NAMES: &'static [&'static str];

    /// Which of the names is that of this kind.
    fn index(self) -> usize;
}

/// How many messages of a kind there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Messages {
    /// The kind, as the counters name it.
    pub kind: &'static str,
    /// Received.
    pub rx: u64,
    /// Sent.
    pub tx: u64,
}

/// `/net/<protocol>/{rx,tx}/<kind>`, by interface.
#[derive(Clone)]
pub struct MessageCounters<K> {
    rx: Arc<[Simple]>,
    tx: Arc<[Simple]>,
    kind: PhantomData<K>,
}

impl<K: MessageKind> MessageCounters<K> {
    /// Enters the counters into the directory.
    ///
    /// # Errors
    /// The stats segment is full.
    pub fn new(counters: &Counters) -> io::Result<Self> {
        let side = |side: &str| -> io::Result<Arc<[Simple]>> {
            let one =
                |kind: &&str| counters.simple(&format!("/net/{}/{side}/{kind}", K::PROTOCOL), MAX_INTERFACES);
            K::NAMES.iter().map(one).collect()
        };
        Ok(MessageCounters { rx: side("rx")?, tx: side("tx")?, kind: PhantomData })
    }

    /// Begins to count for a new interface.
    pub fn begin(&self, interface: SwIfIndex) {
        self.rx.iter().chain(&*self.tx).for_each(|counter| begin(counter, interface));
    }

    /// Counts a received message.
    pub fn count_rx(&self, kind: K, thread: usize, interface: SwIfIndex) {
        if let Some(counter) = self.rx.get(kind.index()) {
            counter.add(thread, interface.0 as usize, 1);
        }
    }

    /// Counts a sent message.
    pub fn count_tx(&self, kind: K, thread: usize, interface: SwIfIndex) {
        if let Some(counter) = self.tx.get(kind.index()) {
            counter.add(thread, interface.0 as usize, 1);
        }
    }

    /// How many of each kind came in and went out on an interface.
    pub fn all(&self, interface: SwIfIndex) -> Vec<Messages> {
        let at = interface.0 as usize;
        let sides = K::NAMES.iter().zip(self.rx.iter().zip(&*self.tx));
        sides.map(|(kind, (rx, tx))| Messages { kind, rx: rx.sum(at), tx: tx.sum(at) }).collect()
    }

    /// How many came in and went out on an interface.
    pub fn sum(&self, kind: K, interface: SwIfIndex) -> (u64, u64) {
        let of = |side: &[Simple]| side.get(kind.index()).map_or(0, |c| c.sum(interface.0 as usize));
        (of(&self.rx), of(&self.tx))
    }
}

/// Begins to count for a new interface.
fn begin(counter: &Simple, interface: SwIfIndex) {
    let at = interface.0 as usize;
    counter.zero(at);
    counter.ensure(at + 1);
}
