//! The lookup as a part of a superpath: several packets' at once, before they come.

use shoal_adj::Adj;
use shoal_buffer::{Packet, SwIfIndex};
use shoal_fib::FibIndex;
use shoal_graph::superpath::{Known, ResolvingNode, StagedLookup};
use shoal_infra::mtrie::{InFlight, Search};
use shoal_infra::{Guard, Mtrie6};
use shoal_ip::forward;
use shoal_wire::Ip6Header;

use super::Ip6Lookup;

impl StagedLookup for Ip6Lookup {
    type Facts<'g> = (&'g Mtrie6, FibIndex);
    type Query = Search<u128>;
    type InFlight = InFlight;

    fn is_far(_: Self::Facts<'_>) -> bool {
        // Its tries are deep: even in the first cache a lookup takes as long as all else.
        true
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Search<u128> {
        pkt.header_at::<Ip6Header>(offset).map_or_else(Search::default, |ip| Search::of(ip.dst_u128()))
    }

    #[inline(always)]
    fn begin((trie, _): Self::Facts<'_>, search: &mut Search<u128>) {
        trie.begin(search);
    }

    #[inline(always)]
    fn advance((trie, _): Self::Facts<'_>, all: &mut [Search<u128>]) -> InFlight {
        trie.advance(all)
    }

    #[inline(always)]
    fn finish((trie, _): Self::Facts<'_>, begun: InFlight, all: &mut [Search<u128>]) {
        trie.finish(begun, all);
    }

    #[inline(always)]
    fn look_up((trie, _): Self::Facts<'_>, search: &mut Search<u128>) {
        trie.look_up(search);
    }
}

impl ResolvingNode for Ip6Lookup {
    type Found<'g> = &'g Adj;

    fn facts<'g>(
        &'g self,
        interface: SwIfIndex,
        guard: Guard<'g>,
    ) -> Option<<Self as StagedLookup>::Facts<'g>> {
        let fib = FibIndex(self.interfaces.ip6_table(interface));
        Some((self.fib.trie_ip6(fib, guard)?, fib))
    }

    #[inline(always)]
    fn find<'g>(
        &'g self,
        (trie, fib): <Self as StagedLookup>::Facts<'g>,
        known: Known<'_, Search<u128>>,
        pkt: &mut Packet<'_>,
        guard: Guard<'g>,
    ) -> Option<&'g Adj> {
        let share = |adj: &Adj, pkt: &Packet<'_>| self.share(adj, fib, pkt);
        forward::find::<Ip6Header>(trie, known, pkt, &self.adjacencies, share, guard)
    }

    #[inline(always)]
    fn found<'g>(&'g self, search: &Search<u128>, guard: Guard<'g>) -> Option<&'g Adj> {
        forward::found(search, &self.adjacencies, guard)
    }

    #[inline(always)]
    fn takes(search: &Search<u128>, pkt: &mut Packet<'_>) -> bool {
        forward::takes::<Ip6Header>(search, pkt)
    }
}
