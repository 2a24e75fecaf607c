//! Packets whose route is no plain rewrite: several ways, other tables, what means something on one link only.

use shoal_adj::{Adj, AdjIndex, AdjKind};
use shoal_buffer::{Flags, Packet};
use shoal_fib::{FibIndex, LookupAddress, follow_route};
use shoal_graph::Edge;
use shoal_infra::Guard;
use shoal_wire::Ip6Header;
use shoal_wire::ip6_address::is_link_local;

use super::{Error, Ip6Lookup, Key, Next};

fn source(pkt: &Packet<'_>) -> u128 {
    pkt.header::<Ip6Header>().map_or(0, |ip| ip.src().to_bits())
}

impl Ip6Lookup {
    /// The member of a balance that a packet takes. Apart, because most routes have one way.
    #[inline(never)]
    pub(super) fn share(&self, adj: &Adj, fib: FibIndex, pkt: &Packet<'_>) -> AdjIndex {
        self.adjacencies.balance(adj, self.fib.flow_hash_ip6(fib, pkt.data()))
    }

    /// Everything but a complete rewrite: the link's own addresses; a route through balances and other tables.
    #[inline(never)]
    pub(super) fn rest(
        &self,
        key: Key,
        index: AdjIndex,
        pkt: &mut Packet<'_>,
        (thread, guard): (usize, Guard<'_>),
    ) -> Result<Next, Error> {
        let dst = key.dst;
        if dst >> 120 == 0xff || is_link_local(dst.into()) {
            return self.on_link(dst, pkt.reborrow(), guard);
        }
        let end = follow_route(
            &self.adjacencies,
            (FibIndex(key.fib), index),
            pkt.len(),
            (thread, guard),
            |adj, fib| self.share(adj, fib, pkt),
            |fib, by| {
                self.fib.lookup_ip6(fib, if by == LookupAddress::Source { source(pkt) } else { dst }, guard)
            },
        );
        let (index, adj) = end.ok_or(Error::TooManyTables)?;
        pkt.meta_mut().adj = index.0;
        Ok(self.next(adj))
    }

    /// RFC 4291, 2.5.6 and 2.7: groups and link-local addresses mean something on one link only. A packet from
    /// elsewhere goes no further than this router.
    fn on_link(&self, dst: u128, mut pkt: Packet<'_>, guard: Guard<'_>) -> Result<Next, Error> {
        let is_group = dst >> 120 == 0xff;
        let missing = if is_group { Error::Group } else { Error::LinkLocal };
        let index = self.links.find(pkt.rx(), dst, guard).ok_or(missing)?;
        let adj = self.adjacencies.get(index, guard);
        if adj.kind() != AdjKind::Local && !pkt.flags().has(Flags::LOCALLY_ORIGINATED) {
            return Err(missing);
        }
        pkt.meta_mut().adj = index.0;
        Ok(self.next(adj))
    }

    fn next(&self, adj: &Adj) -> Next {
        let asker = match adj.kind() {
            AdjKind::Rewrite => return Next::Rewrite,
            AdjKind::Local => return Next::Local,
            AdjKind::Incomplete | AdjKind::Dvr | AdjKind::Node => adj.edge(),
            AdjKind::Glean => self.edges.glean(),
            AdjKind::Punt => return Next::Punt,
            AdjKind::InterfaceRx => return Next::InterfaceRx,
            _ => return Next::Drop,
        };
        // Without a node that asks it leads nowhere.
        if asker == Edge::DROP { Next::Drop } else { Next::Ask(asker) }
    }
}
