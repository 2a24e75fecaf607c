//! What a packet may know of addresses: which are ours, which are on the link.

use shoal_adj::{AdjKind, AdjTable};
use shoal_fib::{FibIndex, FibTables};
use shoal_infra::Guard;
use shoal_interface::{IfTable, SwIfIndex};
use shoal_ip4::Ip4IfTable;
use shoal_wire::MacAddress;

/// Where an address is, seen from an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It is this router's.
    Local,
    /// On the interface's own networks.
    Connected,
    /// In a network of the interface that lends this one its address.
    Lent,
    /// Elsewhere, or nowhere.
    Elsewhere,
}

/// The tables that tell.
#[derive(Clone)]
pub(crate) struct Subnets {
    pub(crate) interfaces: IfTable,
    pub(crate) adjacencies: AdjTable,
    pub(crate) fib: FibTables,
    pub(crate) addresses: Ip4IfTable,
}

impl Subnets {
    /// Where an address is, by the table of the interface: it is connected when packets to it leave by the interface
    /// without a gateway.
    pub(crate) fn place(&self, interface: SwIfIndex, address: u32, guard: Guard<'_>) -> Place {
        let fib = FibIndex(self.interfaces.get(interface, guard).fib_ip4);
        let adj = self.adjacencies.of_leaf(self.fib.lookup(fib, address, guard), guard);
        let here = adj.tx() == interface;
        match adj.kind() {
            AdjKind::Local => Place::Local,
            AdjKind::Glean if here => Place::Connected,
            // A station behind an unnumbered interface is in a network of the interface that lends it the address.
            AdjKind::Glean if Some(adj.tx()) == self.addresses.lender(interface, guard) => Place::Lent,
            AdjKind::Rewrite | AdjKind::Incomplete if here && adj.next_hop_ip4() == address => {
                Place::Connected
            }
            _ => Place::Elsewhere,
        }
    }

    /// Whether an address that is nowhere may be that of a station behind an unnumbered interface: a link with one
    /// station at its end needs no network, as in VPP.
    pub(crate) fn is_stray(&self, interface: SwIfIndex, address: u32, guard: Guard<'_>) -> bool {
        let fib = FibIndex(self.interfaces.get(interface, guard).fib_ip4);
        let adj = self.adjacencies.of_leaf(self.fib.lookup(fib, address, guard), guard);
        matches!(adj.kind(), AdjKind::None | AdjKind::Drop)
            && self.addresses.lender(interface, guard).is_some()
    }

    /// Whether packets to a neighbour go to this station already.
    pub(crate) fn is_known(
        &self,
        interface: SwIfIndex,
        address: u32,
        mac: MacAddress,
        guard: Guard<'_>,
    ) -> bool {
        let fib = FibIndex(self.interfaces.get(interface, guard).fib_ip4);
        let adj = self.adjacencies.of_leaf(self.fib.lookup(fib, address, guard), guard);
        let neighbour = adj.is_rewrite() && adj.next_hop_ip4() == address && adj.tx() == interface;
        neighbour && adj.rewrite().first_chunk() == Some(&mac.0)
    }

    /// Our address to ask for `target` with: the one in its network, else the interface's first; 0 for none.
    pub(crate) fn source(&self, interface: SwIfIndex, target: u32, guard: Guard<'_>) -> u32 {
        let fib = FibIndex(self.interfaces.get(interface, guard).fib_ip4);
        let adj = self.adjacencies.of_leaf(self.fib.lookup(fib, target, guard), guard);
        if adj.tx() == interface && adj.source_ip4() != 0 {
            adj.source_ip4()
        } else {
            self.addresses.primary(interface, guard)
        }
    }
}
