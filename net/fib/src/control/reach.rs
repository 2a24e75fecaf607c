//! What is known of next hops: whether they can be reached.

use std::net::IpAddr;

use shoal_buffer::SwIfIndex;

use super::{Fib, Reach};
use crate::Via;

impl Fib {
    /// A next hop was found not to be reachable, or reachable again: routes with other ways avoid it while it
    /// is down. All next hops are up at first; one that is down is forgotten with its interface.
    pub fn set_next_hop(&self, interface: SwIfIndex, next_hop: IpAddr, reach: Reach) {
        let mut state = self.state.borrow_mut();
        let key = (interface, next_hop);
        let changed = match reach {
            Reach::Up => state.down.remove(&key),
            Reach::Down => state.down.insert(key),
        };
        if changed {
            state.neighbour_changed(interface, next_hop);
        }
    }

    /// What watches the path to a next hop (BFD) says that it works, or not: no route uses it while it does not. It says that
    /// it works, too, when it watches no longer.
    ///
    /// Without an interface the next hop is several hops away: routes that look it up do not use it.
    pub fn set_watched(&self, interface: Option<SwIfIndex>, next_hop: IpAddr, reach: Reach) {
        let mut state = self.state.borrow_mut();
        let key = (interface, next_hop);
        let changed = match reach {
            Reach::Up => state.failed.remove(&key),
            Reach::Down => state.failed.insert(key),
        };
        match interface {
            Some(interface) if changed => {
                state.set_open(interface, next_hop, reach == Reach::Up);
                state.neighbour_changed(interface, next_hop);
            }
            None if changed => state.far_reachability_changed(next_hop),
            _ => {}
        }
    }

    /// Whether a route could do without a next hop: one with several paths, or one that looks it up, names it.
    pub fn has_choice(&self, interface: SwIfIndex, next_hop: IpAddr) -> bool {
        let state = self.state.borrow();
        state.lists.iter().any(|(_, list)| {
            let several = list.paths().len() > 1;
            list.paths().iter().any(|path| match path.via {
                Via::NextHop { interface: i, next_hop: n } => several && (i, n) == (interface, next_hop),
                Via::Recursive { next_hop: n, .. } => n == next_hop,
                _ => false,
            })
        })
    }
}
