//! Packets whose route is no plain rewrite: several ways, other tables, counters.

use std::net::IpAddr;

use shoal_adj::{Adj, AdjIndex, AdjKind};
use shoal_buffer::Packet;
use shoal_fib::{FibIndex, LookupAddress, follow_route};
use shoal_graph::Edge;
use shoal_infra::Guard;
use shoal_wire::Ip4Header;

use super::{Error, Ip4Lookup, Key, Next};

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
        let end = follow_route(
            &self.adjacencies,
            (FibIndex(key.fib), index),
            pkt.len(),
            (thread, guard),
            |adj, fib| self.share(adj, fib, pkt),
            |fib, by| {
                self.fib.lookup(fib, if by == LookupAddress::Source { source(pkt) } else { key.dst }, guard)
            },
        );
        let (index, adj) = end.ok_or(Error::TooManyTables)?;
        pkt.meta_mut().adj = index.0;
        Ok(next(adj))
    }
}

fn source(pkt: &Packet<'_>) -> u32 {
    pkt.header::<Ip4Header>().map_or(0, |ip| ip.src().to_bits())
}

fn next(adj: &Adj) -> Next {
    match adj.kind() {
        AdjKind::Rewrite => Next::Rewrite,
        AdjKind::Local => Next::Local,
        // Without a node that asks it leads nowhere.
        AdjKind::Incomplete if matches!(adj.next_hop(), Some(IpAddr::V6(_))) => match adj.edge() {
            Edge::DROP => Next::Drop,
            edge => Next::Ask(edge),
        },
        AdjKind::Incomplete => Next::Arp,
        AdjKind::Glean => Next::Glean,
        AdjKind::Dvr | AdjKind::Node => Next::Ask(adj.edge()),
        AdjKind::Punt => Next::Punt,
        AdjKind::InterfaceRx => Next::InterfaceRx,
        _ => Next::Drop,
    }
}
