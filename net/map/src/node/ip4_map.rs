//! `ip4-map`: packets to customers go into tunnels (MAP-E).
//! features of `ip4-unicast` -> **ip4-map** -> ip6-lookup | ip4-icmp-error | the next feature

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_ip4::IcmpError;
use shoal_translate46::{ICMP6, Kind, ParsedPacket, carried4, read4};
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol};

use super::fragment::Cut;
use super::{Error, Shared, TX, Trace, begin_again, clamp, class, go_to, is_tcp, later};
use crate::config::{Config, Settings};
use crate::domain::Domain;

/// The hop limit of tunnel packets: VPP's 64, of which its lookup takes one.
pub(super) const HOPS: u8 = 63;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Into a tunnel.
    #[node("ip6-lookup")]
    Lookup,
    /// It is cut before.
    #[node("ip4-map-fragment")]
    Fragment,
    /// The same, to a next hop that is set.
    #[node("ip6-load-balance")]
    LoadBalance,
    /// Its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// It is for no customer.
    Feature(Edge),
}

/// The node.
pub struct Ip4Map {
    pub(crate) shared: Arc<Shared>,
}

/// Bytes of an ICMP error in front of the packet it carries.
pub(super) const ICMP_HEADER: usize = 8;

/// The customer's port in a packet from the Internet: its destination's, an echo's identifier, or, of an ICMP error, the source
/// port of the packet it carries, which the customer sent.
pub(super) fn customers_port(seen: &ParsedPacket<Ipv4Addr>, bytes: &[u8]) -> Result<u16, Error> {
    match seen.kind {
        Kind::Tcp | Kind::Udp | Kind::Query => Ok(seen.ends.dport),
        Kind::Error => {
            let carried = bytes.get(usize::from(seen.header) + ICMP_HEADER..).ok_or(Error::Malformed)?;
            Ok(carried4(carried)?.ends.sport)
        }
        Kind::OtherIcmp => Err(Error::Icmp),
        Kind::Other => Err(Error::BadProtocol),
    }
}

/// A packet to a customer.
pub(super) struct ToCustomer<'c> {
    /// Its domain's number.
    pub index: u32,
    /// Its domain.
    pub domain: &'c Domain,
    /// What the packet is.
    pub seen: ParsedPacket<Ipv4Addr>,
    /// The customer's IPv6 address.
    pub customer: Ipv6Addr,
    /// The customer's port.
    pub port: u16,
}

/// Reads a packet; `None`: it is for no customer.
pub(super) fn to_customer<'c>(
    shared: &Shared,
    config: &'c Config,
    pkt: &Packet<'_>,
) -> Result<Option<ToCustomer<'c>>, Error> {
    let dst = pkt.header::<Ip4Header>().ok_or(Error::Malformed)?.dst();
    let Some((index, domain)) = config.by_ip4(dst) else { return Ok(None) };
    let mut seen = read4(pkt.data())?;
    later(shared, pkt, &mut seen)?;
    let port = if domain.needs_port() { customers_port(&seen, pkt.data())? } else { seen.ends.dport };
    if !domain.is_served(port) {
        return Err(Error::EncapSecCheck);
    }
    let customer = domain.customer(dst, port).ok_or(Error::NoBinding)?;
    Ok(Some(ToCustomer { index: *index, domain, seen, customer, port }))
}

/// A packet that leaves its cutting to a device cannot do so in a tunnel; checksums are completed.
fn ready(pkt: &mut Packet<'_>) -> Result<(), Error> {
    if pkt.flags().has(Flags::GSO) {
        return Err(Error::DfSet);
    }
    if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) {
        let total = pkt.header::<Ip4Header>().map_or(0, |ip| usize::from(ip.total_length()));
        shoal_ip4::checksum::complete(pkt, total).ok_or(Error::Malformed)?;
    }
    Ok(())
}

fn encapsulate(pkt: &mut Packet<'_>, settings: &Settings, src: Ipv6Addr, dst: Ipv6Addr) -> Result<(), Error> {
    let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::Malformed)?;
    ip.decrement_ttl();
    let (tos, total) = (ip.tos(), usize::from(ip.total_length()));
    pkt.truncate(total).ok_or(Error::Malformed)?;
    let length = u16::try_from(pkt.len()).map_err(|_| Error::Malformed)?;
    let mut outer = Ip6Header::new(src, dst, IpProtocol::IP_IN_IP, HOPS, length);
    outer.set_traffic_class(class(settings, tos));
    pkt.push(Ip6Header::LEN).ok_or(Error::Malformed)?;
    let front = pkt.data_mut().get_mut(..Ip6Header::LEN).ok_or(Error::Malformed)?;
    front.copy_from_slice(outer.as_bytes());
    begin_again(pkt);
    // Tunnel packets are this router's: it fragments those that are too large for the way (RFC 2473, 7.1).
    let meta = pkt.meta_mut();
    meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    Ok(())
}

impl PacketNode for Ip4Map {
    const NAME: &'static str = "ip4-map";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let Some(found) = to_customer(&self.shared, config, pkt)? else {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        };
        let ToCustomer { index, domain, seen, customer, port } = found;
        cx.trace(pkt, || Trace { domain: index, port });
        if seen.hops <= 1 {
            IcmpError::TTL.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let settings = &config.settings;
        let mtu = usize::from(domain.parameters.mtu);
        let is_long = mtu > 0 && pkt.len() + Ip6Header::LEN > mtu;
        if is_long && seen.dont_fragment && !settings.frag_ignore_df {
            IcmpError::too_big((mtu - Ip6Header::LEN.min(mtu)) as u16).ask(pkt);
            return Ok(Next::IcmpError);
        }
        ready(pkt)?;
        if is_tcp(&seen) {
            clamp(settings, pkt, seen.header.into());
        }
        let bytes = pkt.len();
        let relay = domain.internet(seen.ends.src);
        self.shared.count(TX, cx.thread(), index, bytes);
        if is_long && settings.frag_inner {
            *pkt.scratch::<Cut>() = Cut::new(customer, class(settings, seen.class), domain.parameters.mtu);
            return Ok(Next::Fragment);
        }
        // The relay's address, or what of its prefix is the router's.
        encapsulate(pkt, settings, relay, customer)?;
        cx.count(Error::Valid, 1);
        let hop = config.next_hops.ip6;
        Ok(if go_to(hop, pkt) { Next::LoadBalance } else { Next::Lookup })
    }
}

/// ICMPv6, as tunnels carry it.
pub(super) const TUNNEL_ICMP: u8 = ICMP6;
