//! Host routes: a neighbour on a connected network is an entry of the forwarding table.

use shoal_adj::AdjKind;
use shoal_fib::FibIndex;
use shoal_interface::SwIfIndex;

use super::Neighbours;
use crate::Protocol;
use crate::table::{FibEntry, Key};

impl<P: Protocol> Neighbours<P> {
    /// Enters a neighbour's host route, if it is to have one; the table it went into.
    ///
    /// A refused route is not an error of the neighbour: packets for it take the slower way over the network's
    /// glean adjacency.
    pub(super) fn announce(&self, key: Key<P::Addr>, fib_entry: FibEntry) -> Option<FibIndex> {
        if fib_entry == FibEntry::Unwanted {
            return None;
        }
        let fib = P::fib_of(&self.interfaces.data(key.0).ok()?);
        if self.belongs_elsewhere(fib, key) {
            return None;
        }
        match self.protocol.announce(fib, key) {
            Ok(()) => Some(fib),
            Err(e) => {
                tracing::warn!(interface = %key.0, neighbour = %key.1, "no host route: {e}");
                None
            }
        }
    }

    /// Whether an address is in another interface's network: packets for it go there, unless a route says otherwise.
    fn belongs_elsewhere(&self, fib: FibIndex, (interface, address): Key<P::Addr>) -> bool {
        let adj = self.adjacencies.first(self.fib.lookup(fib, address));
        let there = adj.tx();
        let connected = match adj.kind() {
            AdjKind::Glean => true,
            // Another station has it there.
            AdjKind::Rewrite | AdjKind::Incomplete => self.get((there, address)).is_some(),
            _ => false,
        };
        connected && there != interface && self.protocol.lender(interface) != Some(there)
    }

    /// Takes a neighbour's host route away.
    pub(super) fn withdraw(&self, key: Key<P::Addr>, fib: Option<FibIndex>) {
        let Some(fib) = fib else { return };
        if let Err(e) = self.protocol.withdraw(fib, key) {
            tracing::debug!(interface = %key.0, neighbour = %key.1, "host route: {e}");
        }
    }

    /// An interface may use another table now, or have another network: its neighbours' host routes follow.
    pub fn move_routes(&self, interface: SwIfIndex) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        let strayed: Vec<(Key<P::Addr>, FibIndex)> = {
            let installed = self.installed.borrow();
            let routes = installed.iter().filter_map(|(key, i)| Some((*key, i.route?)));
            routes.filter(|(key, fib)| key.0 == interface && *fib != P::fib_of(&data)).collect()
        };
        for (key, old) in &strayed {
            self.withdraw(*key, Some(*old));
        }
        let without: Vec<Key<P::Addr>> = {
            let installed = self.installed.borrow();
            let of = installed.iter().filter(|(key, i)| key.0 == interface && i.route.is_none());
            of.map(|(key, _)| *key).collect()
        };
        let wanted = without
            .into_iter()
            .filter(|key| self.get(*key).is_some_and(|neighbour| neighbour.fib_entry == FibEntry::Wanted));
        for key in strayed.into_iter().map(|(key, _)| key).chain(wanted) {
            let route = self.announce(key, FibEntry::Wanted);
            if let Some(installed) = self.installed.borrow_mut().get_mut(&key) {
                installed.route = route;
            }
        }
    }
}
