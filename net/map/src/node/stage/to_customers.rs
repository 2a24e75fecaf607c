//! Packets to customers.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Flags, Packet};
use shoal_graph::superpath::Crossing;
use shoal_graph::{Cx, PacketNode};
use shoal_translate46::{Ends, LEAST_MTU, Sum, WithPorts};
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol};

use super::super::ip4_map::{HOPS, Ip4Map};
use super::super::ip4_map_t::Ip4MapT;
use super::super::{Error, Shared, TX, begin_again, class};
use super::{CommonCase, MapStage, is_clamped};
use crate::config::Config;
use crate::domain::Domain;

/// How much longer IPv6's header is than that of IPv4 without options.
const DIFFERENCE: usize = Ip6Header::LEN - Ip4Header::LEN;

/// What a packet to a customer is found by.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct CustomerQuery {
    dst: u32,
    /// Of a packet with ports.
    port: Option<u16>,
}

impl CustomerQuery {
    #[inline(always)]
    fn read(pkt: &Packet<'_>, offset: usize) -> Self {
        match pkt.data().get(offset..).and_then(WithPorts::read4_as_it_is) {
            Some(WithPorts { ends, .. }) => CustomerQuery { dst: ends.dst.to_bits(), port: Some(ends.dport) },
            None => CustomerQuery {
                dst: pkt.header_at::<Ip4Header>(offset).map_or(0, Ip4Header::dst_u32),
                port: None,
            },
        }
    }

    #[inline(always)]
    fn is_own(self, config: &Config) -> bool {
        config.by_ip4(Ipv4Addr::from_bits(self.dst)).is_some()
    }

    #[inline(always)]
    fn destination(self, config: &Config) -> Option<u128> {
        let address = Ipv4Addr::from_bits(self.dst);
        let (_, domain) = config.by_ip4(address)?;
        domain.customer(address, self.port?).map(Ipv6Addr::to_bits)
    }
}

/// A packet with ports to a customer that there is.
struct Found<'c> {
    index: u32,
    domain: &'c Domain,
    customer: Ipv6Addr,
    seen: WithPorts<Ipv4Addr>,
}

/// Finds the customer of a packet that was read, if it could be. `Err`: it is for no customer, or not a common one.
#[inline(always)]
fn found<'c>(
    config: &'c Config,
    pkt: &Packet<'_>,
    seen: Option<WithPorts<Ipv4Addr>>,
) -> Result<Found<'c>, Crossing> {
    let Some(seen) = seen else {
        let dst = pkt.header::<Ip4Header>().map(Ip4Header::dst).ok_or(Crossing::Leave)?;
        return Err(if config.by_ip4(dst).is_some() { Crossing::Leave } else { Crossing::On });
    };
    let (dst, port) = (seen.ends.dst, seen.ends.dport);
    let (index, domain) = config.by_ip4(dst).ok_or(Crossing::On)?;
    let customer = domain.customer(dst, port).filter(|_| domain.is_served(port)).ok_or(Crossing::Leave)?;
    let settings = &config.settings;
    if seen.hops <= 1 || config.next_hops.ip6.is_some() || is_clamped(settings, &seen) {
        return Err(Crossing::Leave);
    }
    let seen = WithPorts { class: class(settings, seen.class), ..seen };
    Ok(Found { index: *index, domain, customer, seen })
}

/// Whether a packet that becomes so long needs its node, which cuts it or has its sender told.
#[inline(always)]
fn is_too_long<N>(shared: &Shared, found: &Found<'_>, becomes: usize, cx: &Cx<'_, N>) -> bool {
    let of_domain = Some(found.domain.parameters.mtu).filter(|mtu| *mtu > 0).unwrap_or(u16::MAX);
    let mtu = || shared.mtu(found.customer.into(), cx.guard()).min(of_domain);
    becomes > usize::from(LEAST_MTU.min(of_domain)) && becomes > usize::from(mtu())
}

/// What both kinds do to packets of customers that they have found.
trait ToCustomers: PacketNode {
    fn shared(&self) -> &Shared;

    /// Reads a packet that the kind is for.
    fn read(bytes: &[u8]) -> Option<WithPorts<Ipv4Addr>>;

    /// Makes an IPv6 packet of one; `None`: it is left as it was.
    fn send(&self, found: &Found<'_>, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Option<()>
    where
        Self: Sized;
}

impl<N: ToCustomers> CommonCase for N {
    type Query = CustomerQuery;
    type Destination = u128;

    fn shared(&self) -> &Shared {
        ToCustomers::shared(self)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> CustomerQuery {
        CustomerQuery::read(pkt, offset)
    }

    #[inline(always)]
    fn is_own(config: &Config, query: &CustomerQuery) -> bool {
        query.is_own(config)
    }

    #[inline(always)]
    fn destination(config: &Config, query: &CustomerQuery) -> Option<u128> {
        query.destination(config)
    }

    #[inline(always)]
    fn cross(&self, config: &Config, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Crossing {
        match found(config, pkt, N::read(pkt.data())) {
            Ok(found) => Crossing::from(self.send(&found, pkt, cx)),
            Err(other) => other,
        }
    }
}

impl ToCustomers for Ip4MapT {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Option<WithPorts<Ipv4Addr>> {
        WithPorts::read4(bytes)
    }

    #[inline(always)]
    fn send(&self, found: &Found<'_>, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Option<()> {
        let Found { index, domain, customer, seen } = found;
        let (payload, bytes) = (usize::from(seen.payload), pkt.len());
        let becomes = pkt.meta().gso_piece().unwrap_or(payload) + Ip6Header::LEN;
        let total = payload + Ip4Header::LEN;
        if pkt.headroom() < DIFFERENCE || bytes < total || is_too_long(&self.shared, found, becomes, cx) {
            return None;
        }
        pkt.trim_to(total)?;
        pkt.push(DIFFERENCE)?;
        let Ends { src, sport, dport, .. } = seen.ends;
        let to = Ends { src: domain.internet(src), dst: *customer, sport, dport };
        let sum = Sum::of(pkt);
        seen.to6(pkt.data_mut(), &to, sum)?;
        begin_again(pkt);
        let meta = pkt.meta_mut();
        if meta.flags.has(Flags::GSO_TCP4) {
            meta.flags = meta.flags.without(Flags::GSO_TCP4).with(Flags::GSO_TCP6);
        }
        self.shared.count(TX, cx.thread(), *index, bytes);
        cx.count(Error::Valid, 1);
        Some(())
    }
}

impl ToCustomers for Ip4Map {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Option<WithPorts<Ipv4Addr>> {
        WithPorts::read4_as_it_is(bytes)
    }

    /// Into a tunnel.
    #[inline(always)]
    fn send(&self, found: &Found<'_>, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Option<()> {
        let Found { index, domain, customer, seen } = found;
        let (total, bytes) = (usize::from(seen.payload) + Ip4Header::LEN, pkt.len());
        if pkt.headroom() < Ip6Header::LEN
            || bytes < total
            || pkt.flags().has(Flags::GSO)
            || pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD)
            || is_too_long(&self.shared, found, bytes + Ip6Header::LEN, cx)
        {
            return None;
        }
        let relay = domain.internet(seen.ends.src);
        // The router that forwards it takes one hop off.
        let length = u16::try_from(total).ok()?;
        let mut outer = Ip6Header::new(relay, *customer, IpProtocol::IP_IN_IP, HOPS + 1, length);
        outer.set_traffic_class(seen.class);
        pkt.header_mut::<Ip4Header>()?.decrement_ttl();
        pkt.trim_to(total)?;
        pkt.push(Ip6Header::LEN)?;
        pkt.data_mut().get_mut(..Ip6Header::LEN)?.copy_from_slice(outer.as_bytes());
        begin_again(pkt);
        self.shared.count(TX, cx.thread(), *index, bytes);
        cx.count(Error::Valid, 1);
        Some(())
    }
}
