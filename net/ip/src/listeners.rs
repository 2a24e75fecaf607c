//! Which node takes packets for this router, by protocol and by UDP port.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use shoal_buffer::SwIfIndex;
use shoal_graph::Edge;
use shoal_wire::IpProtocol;

use crate::InterfaceSet;

/// Ports that are shared with Linux.
const SHARED_PORTS: usize = 4;

/// The edge of each protocol and of each UDP port, 0 where no node takes them. Edges are those of the family's local node.
pub struct Listeners {
    protocols: Box<[AtomicU16]>,
    udp: Box<[AtomicU16]>,
    fragments: AtomicU16,
    others: AtomicU16,
    shared: [OnceLock<(u16, Arc<InterfaceSet>)>; SHARED_PORTS],
}

impl Default for Listeners {
    fn default() -> Self {
        let table = |n: usize| (0..n).map(|_| AtomicU16::new(0)).collect();
        Listeners {
            protocols: table(256),
            udp: table(65_536),
            fragments: AtomicU16::new(0),
            others: AtomicU16::new(0),
            shared: Default::default(),
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

    /// Shares a UDP port with Linux programs: only what comes in by these interfaces is the listener's where Linux wants
    /// it, too. False if as many ports as can be are shared.
    pub fn share_udp(&self, port: u16, interfaces: &Arc<InterfaceSet>) -> bool {
        self.shared.iter().any(|slot| slot.set((port, Arc::clone(interfaces))).is_ok())
    }

    /// Whether what comes to a UDP port by an interface is for a listener here rather than for Linux.
    pub fn keeps_udp(&self, port: u16, interface: SwIfIndex) -> bool {
        let mut shared = self.shared.iter().map_while(OnceLock::get);
        self.udp(port).is_some()
            && shared.find(|(other, _)| *other == port).is_none_or(|(_, own)| own.has(interface))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_port_is_kept_by_interface_and_others_whole() {
        let (listeners, own) = (Listeners::default(), Arc::new(InterfaceSet::default()));
        listeners.set_udp(3784, Some(Edge(3)));
        listeners.set_udp(67, Some(Edge(4)));
        assert!(listeners.share_udp(3784, &own));
        let (with, without) = (SwIfIndex(1), SwIfIndex(2));
        own.set(with, true);
        assert!(listeners.keeps_udp(3784, with) && !listeners.keeps_udp(3784, without));
        assert!(listeners.keeps_udp(67, without) && !listeners.keeps_udp(68, with));
        // Without a listener it is Linux's, whatever the set says.
        listeners.set_udp(3784, None);
        assert!(!listeners.keeps_udp(3784, with));
        for port in 1..SHARED_PORTS as u16 {
            assert!(listeners.share_udp(port, &own));
        }
        assert!(!listeners.share_udp(9, &own), "there is no place for a fifth");
    }
}
