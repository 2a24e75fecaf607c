//! Host routes: a neighbour on a connected network is an entry of the forwarding table.

use shoal_fib::{FibIndex, Path, Source};
use shoal_interface::SwIfIndex;
use shoal_wire::Ip4Prefix;

use super::Neighbours;
use crate::Key;
use crate::table::FibEntry;

impl Neighbours {
    /// Enters a neighbour's host route, if it is to have one; the table it went into.
    ///
    /// A refused route is not an error of the neighbour: packets for it take the slower way over the network's
    /// glean adjacency.
    pub(super) fn announce(&self, key: Key, fib_entry: FibEntry) -> Option<FibIndex> {
        if fib_entry == FibEntry::Unwanted {
            return None;
        }
        let fib = FibIndex(self.interfaces.data(key.0).ok()?.fib_ip4);
        let path = Path::next_hop(key.1, key.0);
        match self.fib.add(fib, Ip4Prefix::host(key.1), Source::Adjacency, &[path]) {
            Ok(()) => Some(fib),
            Err(e) => {
                tracing::warn!(interface = %key.0, neighbour = %key.1, "no host route: {e}");
                None
            }
        }
    }

    /// Takes a neighbour's host route away.
    pub(super) fn withdraw(&self, key: Key, fib: Option<FibIndex>) {
        let Some(fib) = fib else { return };
        if let Err(e) = self.fib.remove(fib, Ip4Prefix::host(key.1), Source::Adjacency) {
            tracing::debug!(interface = %key.0, neighbour = %key.1, "host route: {e}");
        }
    }

    /// An interface may use another table now: its neighbours' host routes follow.
    pub(super) fn move_routes(&self, interface: SwIfIndex) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        let strayed: Vec<(Key, FibIndex)> = {
            let installed = self.installed.borrow();
            let routes = installed.iter().filter_map(|(key, i)| Some((*key, i.route?)));
            routes.filter(|(key, fib)| key.0 == interface && fib.0 != data.fib_ip4).collect()
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
