//! `ip6-map-t`: packets from customers become IPv4 packets (MAP-T).
//! features of `ip6-unicast` -> **ip6-map-t** -> ip4-lookup | ip6-icmp-error | the next feature

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_ip6::IcmpError;
use shoal_translate46::{
    Ends, HeaderFields, Kind, ParsedPacket, Sum, carried6, error_to4, read6, to4, too_long6,
};
use shoal_wire::Ip6Header;

use super::ip4_map::ICMP_HEADER;
use super::{Error, RX, Shared, Trace, clamp, class, go_to, is_genuine, is_tcp, later, replace};
use crate::config::Settings;
use crate::domain::Domain;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As an IPv4 packet.
    #[node("ip4-lookup")]
    Lookup,
    /// The same, to a next hop that is set.
    #[node("ip4-load-balance")]
    LoadBalance,
    /// Its sender gets an error.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// It is from no customer.
    Feature(Edge),
}

/// The node.
pub struct Ip6MapT {
    pub(crate) shared: Arc<Shared>,
}

/// A customer's packet.
struct Customers<'a> {
    domain: &'a Domain,
    seen: &'a ParsedPacket<Ipv6Addr>,
    /// Of an ICMP error: the packet it is about.
    carried: Option<ParsedPacket<Ipv6Addr>>,
    port: u16,
}

fn ends(seen: &ParsedPacket<Ipv6Addr>, src: Ipv4Addr, dst: Ipv4Addr) -> Ends<Ipv4Addr> {
    Ends { src, dst, sport: seen.ends.sport, dport: seen.ends.dport }
}

impl Customers<'_> {
    /// The IPv4 source. Of an ICMP error, which any router on the way may send, the address that is set for such.
    fn source(&self, settings: &Settings) -> Result<Ipv4Addr, Error> {
        let (domain, src) = (self.domain, self.seen.ends.src);
        let said = domain.of_customer(src);
        if !settings.security_check {
            return Ok(said);
        }
        let needs_port = domain.needs_port();
        let port = if needs_port || self.carried.is_none() { self.port } else { 0 };
        if is_genuine(domain, src, said, port) {
            return Ok(said);
        }
        match (&self.carried, settings.icmp_source) {
            // The packet that it is about must have been to a customer.
            (Some(carried), Some(source)) => {
                let customer = carried.ends.dst;
                let address = domain.of_customer(customer);
                let is_customer = is_genuine(domain, customer, address, carried.ends.dport);
                is_customer.then_some(source).ok_or(Error::SecCheck)
            }
            _ => Err(Error::SecCheck),
        }
    }

    fn translate(&self, pkt: &mut Packet<'_>, settings: &Settings, src: Ipv4Addr) -> Result<(), Error> {
        let Customers { domain, seen, carried, .. } = self;
        if is_tcp(seen) {
            clamp(settings, pkt, seen.header.into());
        }
        let sum = Sum::of(pkt);
        // The router that forwards it takes one hop off.
        let id = pkt.number() as u16;
        let how = HeaderFields { class: class(settings, seen.class), hops: seen.hops, sum, id };
        let total = usize::from(seen.header) + usize::from(seen.payload);
        pkt.truncate(total).ok_or(Error::Malformed)?;
        let to = ends(seen, src, domain.of_internet(seen.ends.dst));
        let head = match carried {
            Some(carried) => {
                let dst = domain.of_customer(carried.ends.dst);
                let carried_to = ends(carried, domain.of_internet(carried.ends.src), dst);
                error_to4(pkt.data_mut(), (seen, carried), (&to, &carried_to), &how)?
            }
            None => to4(pkt.data_mut(), seen, &to, &how)?,
        };
        replace(pkt, head.strip, head.bytes())?;
        let meta = pkt.meta_mut();
        if meta.flags.has(Flags::GSO_TCP6) {
            meta.flags = meta.flags.without(Flags::GSO_TCP6).with(Flags::GSO_TCP4);
        }
        Ok(())
    }
}

impl PacketNode for Ip6MapT {
    const NAME: &'static str = "ip6-map-t";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let ip6 = pkt.header::<Ip6Header>().copied().ok_or(Error::Malformed)?;
        if !config.is_internet(ip6.dst()) {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        let mut seen = read6(pkt.data())?;
        later(&self.shared, pkt, &mut seen)?;
        let carried = if seen.kind == Kind::Error {
            let at = usize::from(seen.header) + ICMP_HEADER;
            Some(carried6(pkt.data().get(at..).ok_or(Error::Malformed)?)?)
        } else {
            None
        };
        let customer = carried.map_or(ip6.src(), |carried| carried.ends.dst);
        let found = config.of_customer(ip6.dst(), customer, None);
        let (index, domain) = found.ok_or(Error::NoDomain)?;
        let port = match (seen.kind, &carried) {
            // The customer was to receive the packet that its error is about.
            (_, Some(carried)) => carried.ends.dport,
            (Kind::OtherIcmp, _) => return Err(Error::Icmp),
            (Kind::Other, _) if domain.needs_port() => return Err(Error::BadProtocol),
            _ => seen.ends.sport,
        };
        cx.trace(pkt, || Trace { domain: index, port });
        if seen.hops <= 1 {
            IcmpError::HOP_LIMIT.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let customers = Customers { domain, seen: &seen, carried, port };
        let settings = &config.settings;
        let src = match customers.source(settings) {
            Ok(src) => src,
            Err(Error::SecCheck) if settings.icmp6_unreachables && seen.kind != Kind::Error => {
                IcmpError::SOURCE_POLICY.ask(pkt);
                return Ok(Next::IcmpError);
            }
            Err(error) => return Err(error),
        };
        let hop = config.next_hops.ip4;
        let far = || hop.map_or(domain.of_internet(seen.ends.dst).into(), |hop| hop.address.into());
        let payload = pkt.meta().gso_piece().unwrap_or(seen.payload.into());
        let mtu = || self.shared.mtu(far(), cx.guard());
        if carried.is_none()
            && let Some(longest) = too_long6(seen.fragment.is_some(), payload, mtu)
        {
            IcmpError::too_big(longest).ask(pkt);
            return Ok(Next::IcmpError);
        }
        let bytes = pkt.len();
        customers.translate(pkt, settings, src)?;
        self.shared.count(RX, cx.thread(), index, bytes);
        cx.count(Error::Valid, 1);
        let has_next_hop = go_to(hop, pkt);
        Ok(if has_next_hop { Next::LoadBalance } else { Next::Lookup })
    }
}
