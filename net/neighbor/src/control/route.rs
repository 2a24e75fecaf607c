//! Host routes: a neighbour on a connected network is an entry of the forwarding table.

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
        match self.protocol.announce(fib, key) {
            Ok(()) => Some(fib),
            Err(e) => {
                tracing::warn!(interface = %key.0, neighbour = %key.1, "no host route: {e}");
                None
            }
        }
    }

    /// Takes a neighbour's host route away.
    pub(super) fn withdraw(&self, key: Key<P::Addr>, fib: Option<FibIndex>) {
        let Some(fib) = fib else { return };
        if let Err(e) = self.protocol.withdraw(fib, key) {
            tracing::debug!(interface = %key.0, neighbour = %key.1, "host route: {e}");
        }
    }

    /// An interface may use another table now: its neighbours' host routes follow.
    pub fn move_routes(&self, interface: SwIfIndex) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        let strayed: Vec<(Key<P::Addr>, FibIndex)> = {
            let installed = self.installed.borrow();
            let routes = installed.iter().filter_map(|(key, i)| Some((*key, i.route?)));
            routes.filter(|(key, fib)| key.0 == interface && *fib != P::fib_of(&data)).collect()
        };
        for (key, old) in strayed {
            self.withdraw(key, Some(old));
            let route = self.announce(key, FibEntry::Wanted);
            if let Some(installed) = self.installed.borrow_mut().get_mut(&key) {
                installed.route = route;
            }
        }
    }
}
