//! The control plane of ICMP: the rate limit, and who listens for answers.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::counter::Simple;
use shoal_graph::{Edge, Graph, GraphError, NodeIndex};
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

/// The edge of `ip4-icmp-input` for "fragmentation needed"; 0: they go where all errors go. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct TooBig(Arc<AtomicU16>);

impl TooBig {
    pub(crate) fn taker(&self) -> Option<Edge> {
        Some(Edge(self.0.load(Ordering::Acquire))).filter(|edge| *edge != Edge::DROP)
    }
}

/// ICMP of this router.
pub struct Icmp {
    graph: Rc<Graph>,
    too_big: TooBig,
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
    pub(crate) fn new(graph: Rc<Graph>, limiter: Arc<Limiter>, rx: Simple, tx: Simple) -> Self {
        let listeners = Rc::new(Listeners::default());
        listeners.start_at(RandomState::new().hash_one(0u8) as u16);
        Icmp { graph, too_big: TooBig::default(), rate: Cell::default(), limiter, listeners, rx, tx }
    }

    pub(crate) fn too_big(&self) -> TooBig {
        self.too_big.clone()
    }

    /// "Fragmentation needed" goes to a node from now on, which passes it on to `ip4-icmp-listener`. It gets packets
    /// whose front is the IPv4 header, all in the first segment up to the error's header, the checksum seen to.
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_too_big_taker(&self, node: NodeIndex) -> Result<(), GraphError> {
        let edge = self.graph.add_edge(self.graph.node("ip4-icmp-input")?, node)?;
        self.too_big.0.store(edge.0, Ordering::Release);
        Ok(())
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
