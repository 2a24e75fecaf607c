//! Which node takes packets for this router, by protocol and by UDP port.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::Edge;
use shoal_wire::IpProtocol;

/// The edge of each protocol and of each UDP port, 0 where no node takes them. Edges are those of the family's local node.
pub struct Listeners {
    protocols: Box<[AtomicU16]>,
    udp: Box<[AtomicU16]>,
    fragments: AtomicU16,
    others: AtomicU16,
}

impl Default for Listeners {
    fn default() -> Self {
        let table = |n: usize| (0..n).map(|_| AtomicU16::new(0)).collect();
        Listeners {
            protocols: table(256),
            udp: table(65_536),
            fragments: AtomicU16::new(0),
            others: AtomicU16::new(0),
        }
    }
}

impl Listeners {
    /// Gives a protocol to an edge, or takes it away.
    pub fn set_protocol(&self, protocol: IpProtocol, edge: Option<Edge>) {
        Self::set(&self.protocols, usize::from(protocol.0), edge);
    }

    /// Gives a UDP port to an edge, or takes it away.
    pub fn set_udp(&self, port: u16, edge: Option<Edge>) {
        Self::set(&self.udp, usize::from(port), edge);
    }

    /// Gives fragments to an edge, which sees what they make up, or takes them away.
    pub fn set_fragments(&self, edge: Option<Edge>) {
        self.fragments.store(edge.map_or(0, |e| e.0), Ordering::Release);
    }

    /// The edge of fragments.
    pub fn fragments(&self) -> Option<Edge> {
        Some(Edge(self.fragments.load(Ordering::Acquire))).filter(|edge| *edge != Edge::DROP)
    }

    /// Gives TCP and protocols without a listener to an edge, or takes them away.
    pub fn set_others(&self, edge: Option<Edge>) {
        self.others.store(edge.map_or(0, |e| e.0), Ordering::Release);
    }

    fn set(table: &[AtomicU16], at: usize, edge: Option<Edge>) {
        if let Some(cell) = table.get(at) {
            cell.store(edge.map_or(0, |e| e.0), Ordering::Release);
        }
    }

    /// The edge of a protocol.
    pub fn protocol(&self, protocol: IpProtocol) -> Option<Edge> {
        Self::find(&self.protocols, usize::from(protocol.0))
    }

    /// The edge of TCP and of protocols without a listener.
    pub fn others(&self) -> Option<Edge> {
        Some(Edge(self.others.load(Ordering::Acquire))).filter(|edge| *edge != Edge::DROP)
    }

    /// The edge of a UDP port.
    pub fn udp(&self, port: u16) -> Option<Edge> {
        Self::find(&self.udp, usize::from(port))
    }

    fn find(table: &[AtomicU16], at: usize) -> Option<Edge> {
        let edge = table.get(at).map_or(0, |cell| cell.load(Ordering::Acquire));
        (edge != 0).then_some(Edge(edge))
    }
}

/// The listeners of one family, as modules find them in the control plane.
pub struct ListenerTable<F> {
    table: Arc<Listeners>,
    family: PhantomData<F>,
}

impl<F> ListenerTable<F> {
    /// Names a table as that of a family.
    pub fn new(table: Arc<Listeners>) -> Self {
        ListenerTable { table, family: PhantomData }
    }

    /// The table, for nodes that read it.
    pub fn shared(&self) -> Arc<Listeners> {
        Arc::clone(&self.table)
    }
}

impl<F> Deref for ListenerTable<F> {
    type Target = Listeners;

    fn deref(&self) -> &Listeners {
        &self.table
    }
}
