//! The control plane of ICMPv6: the rate limit, and which node takes messages of a type.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::counter::Simple;
use shoal_graph::{Edge, Graph, GraphError, NodeIndex};
use shoal_wire::Icmp6Type;

use crate::IcmpError;
use crate::limiter::{Limiter, Rate};

/// The edges of `ip6-icmp-input` by message type, 0 for a type nobody takes. Clones are the same.
#[derive(Clone)]
pub(crate) struct Takers(Arc<[AtomicU16]>);

impl Default for Takers {
    fn default() -> Self {
        Takers((0..=u8::MAX).map(|_| AtomicU16::new(0)).collect())
    }
}

impl Takers {
    pub(crate) fn of(&self, kind: Icmp6Type) -> Option<Edge> {
        let edge = self.0.get(usize::from(kind.0)).map_or(0, |edge| edge.load(Ordering::Acquire));
        (edge != 0).then_some(Edge(edge))
    }

    fn set(&self, kind: Icmp6Type, edge: Edge) {
        if let Some(cell) = self.0.get(usize::from(kind.0)) {
            cell.store(edge.0, Ordering::Release);
        }
    }
}

/// ICMPv6 of this router.
pub struct Icmp6 {
    graph: Rc<Graph>,
    rate: Cell<Rate>,
    limiter: Arc<Limiter>,
    takers: Takers,
    rx: Simple,
    tx: Simple,
}

/// How many messages of one type came and went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type6Count {
    /// The type.
    pub kind: Icmp6Type,
    /// Received by this router.
    pub rx: u64,
    /// Sent by this router.
    pub tx: u64,
}

impl Icmp6 {
    pub(crate) fn new(graph: Rc<Graph>, limiter: Arc<Limiter>, rx: Simple, tx: Simple) -> Self {
        Icmp6 { graph, rate: Cell::default(), limiter, takers: Takers::default(), rx, tx }
    }

    pub(crate) fn takers(&self) -> Takers {
        self.takers.clone()
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

    /// Messages of a type go to a node from now on. It gets packets whose front is the IPv6 header and whose
    /// [`l4`](shoal_buffer::Meta::l4) is where ICMPv6 begins, all in the first segment up to the type's shortest
    /// message, its checksum and for neighbor discovery its hop limit and code seen to.
    ///
    /// # Errors
    /// There is no such node.
    pub fn set_taker(&self, kind: Icmp6Type, node: NodeIndex) -> Result<(), GraphError> {
        let input = self.graph.node("ip6-icmp-input")?;
        self.takers.set(kind, self.graph.add_edge(input, node)?);
        Ok(())
    }

    /// Counts of all types that were ever seen.
    pub fn counts(&self) -> Vec<Type6Count> {
        let count = |n: u8| {
            let at = usize::from(n);
            Type6Count { kind: Icmp6Type(n), rx: self.rx.sum(at), tx: self.tx.sum(at) }
        };
        (0..=u8::MAX).map(count).filter(|c| c.rx + c.tx > 0).collect()
    }
}
