//! Packets of customers.

use std::net::Ipv6Addr;

use shoal_buffer::{Flags, Packet};
use shoal_graph::Cx;
use shoal_graph::superpath::Crossing;
use shoal_translate46::{Ends, Sum, WithPorts, too_long6};
use shoal_wire::{Ip4Header, Ip6Header, IpProtocol, checksum};

use super::super::ip6_map::Ip6Map;
use super::super::ip6_map_t::Ip6MapT;
use super::super::{Error, RX, Shared, begin_again, class, is_genuine};
use super::{CommonCase, MapStage, is_clamped};
use crate::config::Config;

/// How much longer IPv6's header is than that of IPv4 without options.
const DIFFERENCE: usize = Ip6Header::LEN - Ip4Header::LEN;

/// What a customer's packet to be translated is found by.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct TranslatedQuery {
    src: u128,
    dst: u128,
}

impl CommonCase for Ip6MapT {
    type Query = TranslatedQuery;
    type Destination = u32;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> TranslatedQuery {
        let read = |ip: &Ip6Header| TranslatedQuery { src: ip.src().to_bits(), dst: ip.dst_u128() };
        pkt.header_at::<Ip6Header>(offset).map(read).unwrap_or_default()
    }

    #[inline(always)]
    fn is_own(config: &Config, query: &TranslatedQuery) -> bool {
        config.is_internet(Ipv6Addr::from_bits(query.dst))
    }

    fn destination(config: &Config, query: &TranslatedQuery) -> Option<u32> {
        let (src, dst) = (Ipv6Addr::from_bits(query.src), Ipv6Addr::from_bits(query.dst));
        let (_, domain) = config.of_customer(dst, src, None)?;
        Some(domain.of_internet(dst).to_bits())
    }

    #[inline(always)]
    fn cross(&self, config: &Config, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Crossing {
        let Some(ip) = pkt.header::<Ip6Header>() else { return Crossing::Leave };
        if !config.is_internet(ip.dst()) {
            return Crossing::On;
        }
        Crossing::from(WithPorts::read6(pkt.data()).and_then(|seen| self.translated(&seen, config, pkt, cx)))
    }
}

impl Ip6MapT {
    /// Makes an IPv4 packet of one; `None`: it is left as it was.
    #[inline(always)]
    fn translated(
        &self,
        seen: &WithPorts<Ipv6Addr>,
        config: &Config,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, MapStage<Self>>,
    ) -> Option<()> {
        let settings = &config.settings;
        if seen.hops <= 1 || config.next_hops.ip4.is_some() || is_clamped(settings, seen) {
            return None;
        }
        let Ends { src, dst, sport, dport } = seen.ends;
        let (index, domain) = config.of_customer(dst, src, None)?;
        let (address, far) = (domain.of_customer(src), domain.of_internet(dst));
        if settings.security_check && !is_genuine(domain, src, address, sport) {
            return None;
        }
        let (total, bytes) = (usize::from(seen.payload) + Ip6Header::LEN, pkt.len());
        let longest = pkt.meta().gso_piece().unwrap_or(seen.payload.into());
        let mtu = || self.shared.mtu(far.into(), cx.guard());
        if bytes < total
            || seen.payload > u16::MAX - Ip4Header::LEN as u16
            || too_long6(false, longest, mtu).is_some()
        {
            return None;
        }
        pkt.trim_to(total)?;
        let (sum, id) = (Sum::of(pkt), pkt.number() as u16);
        let to = Ends { src: address, dst: far, sport, dport };
        let seen = WithPorts { class: class(settings, seen.class), ..*seen };
        seen.to4(pkt.data_mut(), &to, (sum, id))?;
        pkt.pull(DIFFERENCE)?;
        begin_again(pkt);
        let meta = pkt.meta_mut();
        if meta.flags.has(Flags::GSO_TCP6) {
            meta.flags = meta.flags.without(Flags::GSO_TCP6).with(Flags::GSO_TCP4);
        }
        self.shared.count(RX, cx.thread(), index, bytes);
        cx.count(Error::Valid, 1);
        Some(())
    }
}

/// What a customer's packet in a tunnel is found by.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct TunnelQuery {
    dst: u128,
    /// Of the packet in the tunnel.
    inner: Option<u32>,
}

impl CommonCase for Ip6Map {
    type Query = TunnelQuery;
    type Destination = u32;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> TunnelQuery {
        let Some(ip) = pkt.header_at::<Ip6Header>(offset) else { return TunnelQuery::default() };
        let inner = pkt.header_at::<Ip4Header>(offset + Ip6Header::LEN).map(Ip4Header::dst_u32);
        TunnelQuery { dst: ip.dst_u128(), inner: inner.filter(|_| ip.protocol() == IpProtocol::IP_IN_IP) }
    }

    #[inline(always)]
    fn is_own(config: &Config, query: &TunnelQuery) -> bool {
        config.is_internet(Ipv6Addr::from_bits(query.dst))
    }

    fn destination(_: &Config, query: &TunnelQuery) -> Option<u32> {
        query.inner
    }

    #[inline(always)]
    fn cross(&self, config: &Config, pkt: &mut Packet<'_>, cx: &Cx<'_, MapStage<Self>>) -> Crossing {
        let Some(ip) = pkt.header::<Ip6Header>() else { return Crossing::Leave };
        let (src, dst) = (ip.src(), ip.dst());
        if !config.is_internet(dst) {
            return Crossing::On;
        }
        let is_tunnel = ip.protocol() == IpProtocol::IP_IN_IP;
        Crossing::from(
            is_tunnel.then_some((src, dst)).and_then(|outer| self.decapsulated(outer, config, pkt, cx)),
        )
    }
}

impl Ip6Map {
    /// Takes a packet out of a tunnel; `None`: it is left as it was.
    #[inline(always)]
    fn decapsulated(
        &self,
        (customer, relay): (Ipv6Addr, Ipv6Addr),
        config: &Config,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, MapStage<Self>>,
    ) -> Option<()> {
        let settings = &config.settings;
        let inner = pkt.data().get(Ip6Header::LEN..)?;
        let seen = WithPorts::read4_as_it_is(inner)?;
        let total = usize::from(seen.payload) + Ip4Header::LEN;
        if config.next_hops.ip4.is_some()
            || is_clamped(settings, &seen)
            || total + Ip6Header::LEN > pkt.len()
            || !checksum::verify(inner.get(..Ip4Header::LEN)?)
        {
            return None;
        }
        let Ends { src, sport, .. } = seen.ends;
        let (index, domain) = config.of_customer(relay, customer, Some(src))?;
        if settings.security_check && !is_genuine(domain, customer, src, sport) {
            return None;
        }
        pkt.pull(Ip6Header::LEN)?;
        pkt.trim_to(total)?;
        begin_again(pkt);
        self.shared.count(RX, cx.thread(), index, total);
        cx.count(Error::Valid, 1);
        Some(())
    }
}
