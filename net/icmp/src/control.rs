//! The control plane of ICMP: the rate limit, who listens for answers, and which node takes ICMPv6 messages of a type.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::counter::Simple;
use shoal_graph::{Edge, Graph, GraphError, NodeIndex};
use shoal_wire::{Icmp4Type, Icmp6Type};

use crate::echo_answers::{EchoAnswer, Listener, Listeners};
use crate::limiter::{Allowance, Rate};

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

/// How many messages of one type came and went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeCount<T> {
    /// The type.
    pub kind: T,
    /// Received by this router.
    pub rx: u64,
    /// Sent by this router.
    pub tx: u64,
}

/// ICMP of one family: [`Icmp`] and [`Icmp6`].
pub struct Messages<T> {
    graph: Rc<Graph>,
    rate: Cell<Rate>,
    allowance: Allowance,
    rx: Simple,
    pub(crate) listeners: Rc<Listeners>,
    pub(crate) takers: TypeTable,
    kind: fn(u8) -> T,
}

/// ICMP of this router.
pub type Icmp = Messages<Icmp4Type>;

/// ICMPv6 of this router.
pub type Icmp6 = Messages<Icmp6Type>;

impl<T> Messages<T> {
    pub(crate) fn new(graph: Rc<Graph>, kind: fn(u8) -> T, rx: Simple, tx: Simple) -> Self {
        let rate = Rate::default();
        Messages {
            graph,
            rate: Cell::new(rate),
            allowance: Allowance::new(rate, tx),
            rx,
            listeners: Listeners::new(),
            takers: TypeTable::default(),
            kind,
        }
    }

    /// What may be sent, for nodes of other crates that send errors or redirects.
    pub fn allowance(&self) -> Allowance {
        self.allowance.clone()
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
        self.allowance.set(rate);
        Ok(())
    }

    /// An identifier for echo requests, with the answers to them: at most `capacity` wait to be read.
    ///
    /// # Errors
    /// All identifiers are in use.
    pub fn listen(&self, capacity: usize) -> Result<Listener, IcmpError> {
        self.listeners.listen(capacity).ok_or(IcmpError::NoIdentifier)
    }

    pub(crate) fn deliver(&self, heard: EchoAnswer) {
        self.listeners.deliver(heard);
    }

    /// Counts of all types that were ever seen.
    pub fn counts(&self) -> Vec<TypeCount<T>> {
        let count = |n: u8| TypeCount {
            kind: (self.kind)(n),
            rx: self.rx.sum(usize::from(n)),
            tx: self.allowance.sent(n),
        };
        (0..=u8::MAX).map(count).filter(|c| c.rx + c.tx > 0).collect()
    }
}

impl Icmp {
    /// "Fragmentation needed" goes to a node from now on, which passes it on to `ip4-icmp-listener`. It gets packets
    /// whose front is the IPv4 header, all in the first segment up to the error's header, the checksum seen to.
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_too_big_taker(&self, node: NodeIndex) -> Result<(), GraphError> {
        let input = self.graph.node("ip4-icmp-input")?;
        self.takers.set(Icmp4Type::DESTINATION_UNREACHABLE.0, self.graph.add_edge(input, node)?);
        Ok(())
    }
}

impl Icmp6 {
    /// Messages of a type go to a node from now on. It gets packets whose front is the IPv6 header and whose
    /// [`l4`](shoal_buffer::Meta::l4) is where ICMPv6 begins, all in the first segment up to the type's shortest
    /// message, its checksum and for neighbor discovery its hop limit and code seen to. Echo requests stay here; other
    /// echo replies and errors go to [`Messages::listen`].
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_taker(&self, kind: Icmp6Type, node: NodeIndex) -> Result<(), GraphError> {
        let input = self.graph.node("ip6-icmp-input")?;
        self.takers.set(kind.0, self.graph.add_edge(input, node)?);
        Ok(())
    }
}

/// The edges of `ip4-icmp-input` or `ip6-icmp-input` by message type, 0 for a type without a taker. Clones are the
/// same.
#[derive(Clone)]
pub(crate) struct TypeTable(Arc<[AtomicU16]>);

impl Default for TypeTable {
    fn default() -> Self {
        TypeTable((0..=u8::MAX).map(|_| AtomicU16::new(0)).collect())
    }
}

impl TypeTable {
    pub(crate) fn of(&self, kind: u8) -> Option<Edge> {
        let edge = self.0.get(usize::from(kind)).map_or(0, |edge| edge.load(Ordering::Acquire));
        (edge != 0).then_some(Edge(edge))
    }

    fn set(&self, kind: u8, edge: Edge) {
        if let Some(cell) = self.0.get(usize::from(kind)) {
            cell.store(edge.0, Ordering::Release);
        }
    }
}
