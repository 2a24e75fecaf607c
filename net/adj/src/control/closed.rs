//! Neighbours that are closed to all packets but those that find out whether they can be reached.

use std::net::IpAddr;

use shoal_buffer::SwIfIndex;

use super::key::Key;
use super::{AdjError, Adjacencies};
use crate::{AdjIndex, Link};

/// The path MTU that marks a neighbour's adjacency for probes: none.
const PROBE: u16 = u16::MAX;

impl Adjacencies {
    /// The adjacency of one neighbour for packets that find out whether it can be reached, locked once more. It stays as it is
    /// while the neighbour is closed ([`set_open`](Self::set_open)).
    ///
    /// # Errors
    /// The table is full, or there is no such interface.
    pub fn probe(&self, interface: SwIfIndex, link: Link, next_hop: IpAddr) -> Result<AdjIndex, AdjError> {
        self.capped(interface, link, next_hop, PROBE)
    }

    /// Closes a neighbour, so that packets to it are dropped, or opens it again.
    pub fn set_open(&self, interface: SwIfIndex, next_hop: IpAddr, open: bool) {
        let mut closed = self.closed.borrow_mut();
        let key = (interface, next_hop);
        let changed = if open { closed.remove(&key) } else { closed.insert(key) };
        drop(closed);
        if changed {
            self.refresh_neighbour(interface, next_hop);
        }
    }

    pub(super) fn is_closed(&self, key: Key) -> bool {
        match key {
            Key::Neighbour(interface, _, next_hop) => self.closed.borrow().contains(&(interface, next_hop)),
            Key::Capped(interface, _, next_hop, mtu) if mtu != PROBE => {
                self.closed.borrow().contains(&(interface, next_hop))
            }
            _ => false,
        }
    }
}
