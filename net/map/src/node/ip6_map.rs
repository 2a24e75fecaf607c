//! `ip6-map`: packets from customers come out of tunnels (MAP-E).
//! features of `ip6-unicast` -> **ip6-map** -> ip4-lookup | ip6-icmp-error | the next feature

use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::NextNodes;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_ip6::IcmpError;
use shoal_translate46::{Kind, ParsedPacket, carried4, read4};
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol, checksum};

use super::ip4_map::{ICMP_HEADER, TUNNEL_ICMP};
use super::{Error, RX, Shared, Trace, clamp, go_to, is_genuine, is_tcp, replace};
use crate::config::Settings;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Out of a tunnel.
    #[node("ip4-lookup")]
    Lookup,
    /// The same, to a next hop that is set.
    #[node("ip4-load-balance")]
    LoadBalance,
    /// Its sender gets an error: it may not send it.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// It is from no customer.
    Feature(Edge),
}

/// The node.
pub struct Ip6Map {
    pub(crate) shared: Arc<Shared>,
}

/// The customer's port in a packet to the Internet.
fn customers_port(seen: &ParsedPacket<Ipv4Addr>, bytes: &[u8]) -> Result<u16, Error> {
    match seen.kind {
        Kind::Tcp | Kind::Udp | Kind::Query => Ok(seen.ends.sport),
        // The customer was to receive the packet that its error is about.
        Kind::Error => {
            let carried = bytes.get(usize::from(seen.header) + ICMP_HEADER..).ok_or(Error::Malformed)?;
            Ok(carried4(carried)?.ends.dport)
        }
        Kind::OtherIcmp => Err(Error::Icmp),
        Kind::Other => Err(Error::BadProtocol),
    }
}

impl Ip6Map {
    /// The sender of a packet that may not be is told, if senders are.
    fn refuse(pkt: &mut Packet<'_>, settings: &Settings, why: Error) -> Result<Next, Error> {
        if !settings.icmp6_unreachables {
            return Err(why);
        }
        IcmpError::SOURCE_POLICY.ask(pkt);
        Ok(Next::IcmpError)
    }

    fn decapsulate(
        &self,
        pkt: &mut Packet<'_>,
        ip6: &Ip6Header,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let settings = &config.settings;
        let inner = pkt.data().get(Ip6Header::LEN..).ok_or(Error::Malformed)?;
        let seen = read4(inner)?;
        let header = inner.get(..usize::from(seen.header)).ok_or(Error::Malformed)?;
        let total = usize::from(seen.header) + usize::from(seen.payload);
        if !checksum::verify(header) || total + Ip6Header::LEN > pkt.len() {
            return Err(Error::Malformed);
        }
        let src = seen.ends.src;
        let found = config.of_customer(ip6.dst(), ip6.src(), Some(src));
        let Some((index, domain)) = found else { return Self::refuse(pkt, settings, Error::NoDomain) };
        let first = seen.is_first();
        let port = if domain.needs_port() && first { customers_port(&seen, inner)? } else { seen.ends.sport };
        cx.trace(pkt, || Trace { domain: index, port });
        // Of later fragments the port is not known: they cannot be checked where customers share an address.
        let is_checked = settings.security_check && (first || !domain.needs_port());
        if is_checked && !is_genuine(domain, ip6.src(), src, port)
            || (!first && settings.security_check_fragments && domain.needs_port())
        {
            let why = if first { Error::DecapSecCheck } else { Error::FragmentDropped };
            return Self::refuse(pkt, settings, why);
        }
        let is_tcp = is_tcp(&seen);
        replace(pkt, Ip6Header::LEN, &[])?;
        pkt.truncate(total).ok_or(Error::Malformed)?;
        if is_tcp {
            clamp(settings, pkt, seen.header.into());
        }
        self.shared.count(RX, cx.thread(), index, pkt.len());
        cx.count(Error::Valid, 1);
        let hop = config.next_hops.ip4;
        let is_known = go_to(hop, pkt);
        Ok(if is_known { Next::LoadBalance } else { Next::Lookup })
    }

    /// An error about a tunnel's packet is sent to the sender of the packet in the tunnel, from the address that is
    /// set.
    fn relay(pkt: &mut Packet<'_>, settings: &Settings) -> Result<(), Error> {
        const CARRIED: usize = Ip6Header::LEN + ICMP_HEADER;
        let source = settings.icmp_source.ok_or(Error::IcmpRelay)?;
        let bytes = pkt.data();
        let whole = bytes.get(Ip6Header::LEN..).ok_or(Error::Malformed)?;
        let [kind, code] = *whole.first_chunk::<2>().ok_or(Error::Malformed)?;
        let mtu = whole.get(4..8).and_then(|b| b.first_chunk::<4>()).map_or(0, |b| u32::from_be_bytes(*b));
        let carried: &[u8] = bytes.get(CARRIED..).ok_or(Error::Malformed)?;
        if carried.get(6) != Some(&IpProtocol::IP_IN_IP.0) {
            return Err(Error::IcmpRelay);
        }
        let inner = carried.get(Ip6Header::LEN..).ok_or(Error::Malformed)?;
        let seen = carried4(inner)?;
        // RFC 2473, 8.2.
        let (kind, code, word) = match (kind, code) {
            (2, _) => (3, 4, mtu.saturating_sub(Ip6Header::LEN as u32).min(u16::MAX.into())),
            (1 | 3, _) => (3, 1, 0),
            _ => return Err(Error::IcmpRelay),
        };
        let quoted: Vec<u8> = inner.iter().take(usize::from(seen.header) + 8).copied().collect();
        let mut icmp = [&[kind, code, 0, 0][..], &u32::to_be_bytes(word), &quoted].concat();
        let sum = checksum::checksum(&icmp).to_be_bytes();
        for (to, from) in icmp.iter_mut().skip(2).zip(sum) {
            *to = from;
        }
        let total = (Ip4Header::LEN + icmp.len()) as u16;
        let mut ip = Ip4Header::new(source, seen.ends.src, IpProtocol::ICMP, 64, total);
        ip.update_checksum();
        let packet = [ip.as_bytes(), &icmp].concat();
        let len = pkt.len();
        pkt.truncate(packet.len().min(len)).ok_or(Error::Malformed)?;
        pkt.set_data(&packet).ok_or(Error::IcmpRelay)?;
        super::begin_again(pkt);
        Ok(())
    }
}

impl PacketNode for Ip6Map {
    const NAME: &'static str = "ip6-map";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let ip6 = pkt.header::<Ip6Header>().copied().ok_or(Error::Malformed)?;
        if !config.is_internet(ip6.dst()) {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        match ip6.protocol() {
            IpProtocol::IP_IN_IP => self.decapsulate(pkt, &ip6, cx),
            IpProtocol(TUNNEL_ICMP) if pkt.data().get(Ip6Header::LEN).is_some_and(|kind| *kind < 128) => {
                Self::relay(pkt, &config.settings)?;
                Ok(Next::Lookup)
            }
            // Pings of the relay, and what else is for the router.
            _ => Ok(Next::Feature(cx.next_feature(pkt))),
        }
    }
}
