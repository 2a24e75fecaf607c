//! What means something on one link only: the router's own link-local address there, groups, neighbours.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::rc::Rc;

use shoal_adj::{AdjError, AdjIndex, AdjKind, Adjacencies, Link};
use shoal_interface::SwIfIndex;

use super::Ip6LinkTable;

/// The groups a router is in on each of its links: RFC 4291, 2.8; RFC 3810, 6.
const GROUPS: [u128; 6] = [
    0xff01 << 112 | 1,
    0xff02 << 112 | 1,
    0xff01 << 112 | 2,
    0xff02 << 112 | 2,
    0xff05 << 112 | 2,
    0xff02 << 112 | 0x16,
];

/// The groups of an interface with these addresses.
pub(super) fn groups(addresses: impl Iterator<Item = Ipv6Addr>) -> BTreeSet<Ipv6Addr> {
    let solicited = addresses.map(shoal_wire::ip6_address::solicited_node);
    GROUPS.into_iter().map(Ipv6Addr::from_bits).chain(solicited).collect()
}

/// Entries of the table packets read, and the lock on each adjacency in it.
pub(super) struct Links {
    adjacencies: Rc<Adjacencies>,
    pub(super) table: Ip6LinkTable,
    held: RefCell<BTreeMap<(SwIfIndex, Ipv6Addr), AdjIndex>>,
}

impl Links {
    pub(super) fn new(adjacencies: Rc<Adjacencies>) -> Self {
        Links { adjacencies, table: Ip6LinkTable::default(), held: RefCell::default() }
    }

    fn enter(&self, interface: SwIfIndex, address: Ipv6Addr, adj: AdjIndex) {
        self.table.set(interface, address, Some(adj));
        if let Some(old) = self.held.borrow_mut().insert((interface, address), adj) {
            self.adjacencies.unlock(old);
        }
    }

    /// Packets to the address are for this router.
    pub(super) fn own(&self, interface: SwIfIndex, address: Ipv6Addr) -> Result<(), AdjError> {
        let adj = self.adjacencies.special(AdjKind::Local)?;
        self.enter(interface, address, adj);
        Ok(())
    }

    /// Packets to the address are thrown away: it is not this router's yet.
    pub(super) fn bar(&self, interface: SwIfIndex, address: Ipv6Addr) -> Result<(), AdjError> {
        let adj = self.adjacencies.special(AdjKind::Drop)?;
        self.enter(interface, address, adj);
        Ok(())
    }

    /// Packets of this router to unknown link-local addresses start a neighbour solicitation.
    pub(super) fn anybody(&self, interface: SwIfIndex, source: Ipv6Addr) -> Result<(), AdjError> {
        let adj = self.adjacencies.glean(interface, source.into())?;
        self.enter(interface, Ip6LinkTable::ANY_INTERFACE, adj);
        Ok(())
    }

    /// Packets of this router to the address go to a neighbour.
    pub(super) fn neighbour(&self, interface: SwIfIndex, address: Ipv6Addr) -> Result<(), AdjError> {
        let adj = self.adjacencies.neighbour(interface, Link::Ip6, address.into())?;
        self.enter(interface, address, adj);
        Ok(())
    }

    pub(super) fn leave(&self, interface: SwIfIndex, address: Ipv6Addr) {
        let held = self.held.borrow_mut().remove(&(interface, address));
        if let Some(adj) = held {
            self.table.set(interface, address, None);
            self.adjacencies.unlock(adj);
        }
    }

    /// Groups of an interface that have an entry.
    pub(super) fn of(&self, interface: SwIfIndex) -> Vec<Ipv6Addr> {
        let all = (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from_bits(u128::MAX));
        self.held.borrow().range(all).map(|((_, address), _)| *address).collect()
    }

    /// Nothing is known of an interface any more.
    pub(super) fn clear(&self, interface: SwIfIndex) {
        for address in self.of(interface) {
            self.leave(interface, address);
        }
    }
}
