//! Packets whose route is no plain rewrite: several ways, other tables, counters.

use std::net::IpAddr;

use shoal_adj::{Adj, AdjIndex, AdjKind};
use shoal_buffer::Packet;
use shoal_fib::FibIndex;
use shoal_graph::Edge;
use shoal_infra::Guard;

use super::{Error, Ip4Lookup, Key, Next};

/// Tables a packet may be sent through one after the other.
const MOST_TABLES: usize = 8;

impl Ip4Lookup {
    /// The member of a balance that a packet takes. Apart, because most routes have one way.
    #[inline(never)]
    pub(super) fn share(&self, adj: &Adj, fib: FibIndex, pkt: &Packet<'_>) -> AdjIndex {
        self.adjacencies.balance(adj, self.fib.flow_hash(fib, pkt.data()))
    }

    /// Everything but a complete rewrite: follows the route through balances and other tables.
    #[inline(never)]
    pub(super) fn rest(
        &self,
        key: Key,
        index: AdjIndex,
        pkt: &mut Packet<'_>,
        (thread, guard): (usize, Guard<'_>),
    ) -> Result<Next, Error> {
        let (mut index, mut fib) = (index, FibIndex(key.fib));
        for _ in 0..=MOST_TABLES {
            let mut adj = self.adjacencies.get(index, guard);
            if adj.kind() == AdjKind::Count {
                index = self.adjacencies.count_route(index, adj, thread, pkt.len());
                adj = self.adjacencies.get(index, guard);
            }
            if adj.is_balance() {
                index = self.share(adj, fib, pkt);
                adj = self.adjacencies.get(index, guard);
            }
            if adj.kind() != AdjKind::Lookup {
                pkt.meta_mut().adj = index.0;
                return Ok(next(adj));
            }
            fib = FibIndex(adj.table());
            index = self.fib.lookup(fib, key.dst, guard);
        }
        Err(Error::TooManyTables)
    }
}

fn next(adj: &Adj) -> Next {
    match adj.kind() {
        AdjKind::Rewrite => Next::Rewrite,
        AdjKind::Local => Next::Local,
        // Without anybody who asks it leads nowhere.
        AdjKind::Incomplete if matches!(adj.next_hop(), Some(IpAddr::V6(_))) => match adj.edge() {
            Edge::DROP => Next::Drop,
            edge => Next::Ask(edge),
        },
        AdjKind::Incomplete => Next::Arp,
        AdjKind::Glean => Next::Glean,
        AdjKind::Punt => Next::Punt,
        AdjKind::InterfaceRx => Next::InterfaceRx,
        _ => Next::Drop,
    }
}
