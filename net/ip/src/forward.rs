//! How plain packets are forwarded: what the lookups and rewrites of both families do to most packets.

use shoal_adj::{Adj, AdjIndex, AdjTable};
use shoal_buffer::{Flags, Meta, Packet};
use shoal_graph::Edge;
use shoal_graph::superpath::Known;
use shoal_infra::Guard;
use shoal_infra::mtrie::{Address, Mtrie, Search};
use shoal_wire::{Ip4Header, Ip6Header};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The header of a packet that is forwarded.
pub trait Forwarded: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned {
    /// An address as a number in host order.
    type Address: Address;

    /// The destination.
    fn destination(&self) -> Self::Address;

    /// Hops that are left.
    fn hops(&self) -> u8;

    /// Bytes of the packet, this header included.
    fn total(&self) -> usize;

    /// Whether the source may mean something on one link only.
    fn may_be_of_link(&self) -> bool;

    /// Takes a hop off a packet that has `hops`.
    fn take_hop(&mut self, hops: u8);
}

impl Forwarded for Ip4Header {
    type Address = u32;

    #[inline(always)]
    fn destination(&self) -> u32 {
        self.dst_u32()
    }

    #[inline(always)]
    fn hops(&self) -> u8 {
        self.ttl()
    }

    #[inline(always)]
    fn total(&self) -> usize {
        usize::from(self.total_length())
    }

    #[inline(always)]
    fn may_be_of_link(&self) -> bool {
        false
    }

    #[inline(always)]
    fn take_hop(&mut self, hops: u8) {
        self.decrement_ttl_from(hops);
    }
}

impl Forwarded for Ip6Header {
    type Address = u128;

    #[inline(always)]
    fn destination(&self) -> u128 {
        self.dst_u128()
    }

    #[inline(always)]
    fn hops(&self) -> u8 {
        self.hop_limit()
    }

    #[inline(always)]
    fn total(&self) -> usize {
        Ip6Header::LEN + usize::from(self.payload_length())
    }

    #[inline(always)]
    fn may_be_of_link(&self) -> bool {
        let [top, ..] = self.src_bytes();
        *top == 0xfe
    }

    #[inline(always)]
    fn take_hop(&mut self, hops: u8) {
        self.decrement_hop_limit_from(hops);
    }
}

/// The adjacency of a packet whose route is a complete rewrite, or several of which `share` chooses one; the packet then
/// has its index. `None` for another, and the packet is as it was.
#[inline(always)]
pub fn find<'g, H: Forwarded>(
    trie: &Mtrie<H::Address>,
    known: Known<'_, Search<H::Address>>,
    pkt: &mut Packet<'_>,
    adjacencies: &'g AdjTable,
    share: impl FnOnce(&Adj, &Packet<'_>) -> AdjIndex,
    guard: Guard<'g>,
) -> Option<&'g Adj> {
    let value = match known {
        Known::Answer(search) => search.value(),
        Known::Chosen(number, _) => number,
        Known::Nothing | Known::Other(..) => trie.lookup(pkt.header::<H>()?.destination()),
    };
    let mut index = AdjIndex(value);
    let mut adj = adjacencies.get(index, guard);
    if !adj.is_rewrite() {
        if !adj.is_balance() {
            return None;
        }
        index = share(adj, pkt);
        adj = adjacencies.get(index, guard);
        if !adj.is_rewrite() {
            return None;
        }
    }
    if pkt.meta().fib().is_some() {
        return None;
    }
    pkt.meta_mut().adj = index.0;
    Some(adj)
}

/// What all packets to a destination find, if its route is a complete rewrite.
#[inline(always)]
pub fn found<'g, A: Address>(
    search: &Search<A>,
    adjacencies: &'g AdjTable,
    guard: Guard<'g>,
) -> Option<&'g Adj> {
    Some(adjacencies.get(AdjIndex(search.value()), guard)).filter(|adj| adj.is_rewrite())
}

/// Whether a packet goes to the destination that was found; it then has the adjacency's index.
#[inline(always)]
pub fn takes<H: Forwarded>(search: &Search<H::Address>, pkt: &mut Packet<'_>) -> bool {
    let same = pkt.header::<H>().is_some_and(|ip| search.is_for(ip.destination()));
    if !same || pkt.meta().fib().is_some() {
        return false;
    }
    pkt.meta_mut().adj = search.value();
    true
}

/// Packets that are not plainly forwarded.
const UNUSUAL: Flags = Flags::LOCALLY_ORIGINATED.with(Flags::REDIRECT_DONE).with(Flags::LINK_MULTICAST);

/// Sends a plain packet on its way with `rewrite` in front; of another nothing is changed.
#[inline(always)]
pub fn put_in_front<H: Forwarded, const N: usize>(
    rewrite: &[u8; N],
    adj: &Adj,
    pkt: &mut Packet<'_>,
) -> Option<Edge> {
    if pkt.flags().has(UNUSUAL) || adj.tx() == pkt.rx() {
        return None;
    }
    let ip = pkt.header::<H>()?;
    let (hops, of_link) = (ip.hops(), ip.may_be_of_link());
    let too_long = ip.total() > usize::from(adj.mtu);
    if hops <= 1 || of_link || too_long && !fits_in_pieces(pkt.meta(), pkt.current(), adj.mtu) {
        return None;
    }
    pkt.push(N)?;
    pkt.meta_mut().tx = adj.tx();
    // All of the packet is written at last, so that nothing of it must be read again.
    let (front, ip) = pkt.data_mut().split_first_chunk_mut()?;
    let (ip, _) = H::mut_from_prefix(ip).ok()?;
    ip.take_hop(hops);
    *front = *rewrite;
    Some(adj.edge())
}

/// The same where the header is no plain Ethernet one: there is none, or it has one tag or two.
#[inline(always)]
pub fn put_other_in_front<H: Forwarded>(adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
    if let Some(tagged) = adj.tagged_rewrite::<18>() {
        put_in_front::<H, _>(tagged, adj, pkt)
    } else if let Some(twice) = adj.tagged_rewrite::<22>() {
        put_in_front::<H, _>(twice, adj, pkt)
    } else {
        put_in_front::<H, _>(adj.no_rewrite()?, adj, pkt)
    }
}

/// The same where features run behind the rewrite: they are told where the network header starts.
#[inline(always)]
pub fn rewrite_featured<H: Forwarded>(adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
    let rewrite = adj.featured_ethernet_rewrite()?;
    let edge = put_in_front::<H, _>(rewrite, adj, pkt)?;
    let l3 = pkt.current() + rewrite.len() as i16;
    pkt.meta_mut().l3 = l3;
    Some(edge)
}

/// Whether the device cuts the packet into pieces that are short enough. Such packets are plain, however long: they
/// must not be overtaken by shorter ones of their flow.
#[cold]
pub fn fits_in_pieces(meta: &Meta, current: i16, mtu: u16) -> bool {
    if !meta.flags.has(Flags::GSO) {
        return false;
    }
    // The network headers end where the transport header starts.
    let headers = i32::from(meta.l4) - i32::from(current) + i32::from(meta.gso_header);
    headers >= 0 && headers + i32::from(meta.gso_size) <= i32::from(mtu)
}
