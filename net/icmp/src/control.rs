//! The control plane of ICMP: the rate limit, and who listens for answers.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::counter::Simple;
use shoal_wire::Icmp4Type;

use crate::heard::{Heard, Listener, Listeners};
use crate::limiter::{Limiter, Rate};

/// Why an operation on ICMP failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IcmpError {
    /// No identifier is free.
    #[error("65,536 pings run already: no identifier is left")]
    NoIdentifier,
    /// A bucket that holds nothing lets nothing through.
    #[error("a burst of 0 would stop all ICMP errors: at least 1")]
    NoBurst,
}

/// ICMP of this router.
pub struct Icmp {
    rate: Cell<Rate>,
    limiter: Arc<Limiter>,
    pub(crate) listeners: Rc<Listeners>,
    rx: Simple,
    tx: Simple,
}

/// How many messages of one type came and went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeCount {
    /// The type.
    pub kind: Icmp4Type,
    /// Received by this router.
    pub rx: u64,
    /// Sent by this router.
    pub tx: u64,
}

impl Icmp {
    pub(crate) fn new(limiter: Arc<Limiter>, rx: Simple, tx: Simple) -> Self {
        let listeners = Rc::new(Listeners::default());
        listeners.start_at(RandomState::new().hash_one(0u8) as u16);
        Icmp { rate: Cell::default(), limiter, listeners, rx, tx }
    }

    /// How many errors may be sent.
    pub fn rate(&self) -> Rate {
        self.rate.get()
    }

    /// Sets how many errors may be sent.
    ///
    /// # Errors
    /// The burst is zero.
    pub fn set_rate(&self, rate: Rate) -> Result<(), IcmpError> {
        if rate.burst == 0 {
            return Err(IcmpError::NoBurst);
        }
        self.rate.set(rate);
        self.limiter.set(rate);
        Ok(())
    }

    /// An identifier for echo requests, with the answers to them: at most `capacity` wait to be read.
    ///
    /// # Errors
    /// All identifiers are in use.
    pub fn listen(&self, capacity: usize) -> Result<Listener, IcmpError> {
        self.listeners.listen(capacity).ok_or(IcmpError::NoIdentifier)
    }

    pub(crate) fn deliver(&self, heard: Heard) {
        self.listeners.deliver(heard);
    }

    /// Counts of all types that were ever seen.
    pub fn counts(&self) -> Vec<TypeCount> {
        let count = |n: u8| {
            let at = usize::from(n);
            TypeCount { kind: Icmp4Type(n), rx: self.rx.sum(at), tx: self.tx.sum(at) }
        };
        (0..=u8::MAX).map(count).filter(|c| c.rx + c.tx > 0).collect()
    }
}
