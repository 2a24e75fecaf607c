//! `ip4-map-t`: packets to customers become IPv6 packets (MAP-T).
//! features of `ip4-unicast` -> **ip4-map-t** -> ip6-lookup | ip4-map-t-fragment | ip4-icmp-error | the next feature

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_ip4::IcmpError;
use shoal_translate46::{
    Ends, HeaderFields, Kind, LEAST_MTU, ParsedPacket, Sum, carried4, error_to6, to6, too_long4,
};

use super::fragment6::Cut6;
use super::ip4_map::{ICMP_HEADER, ToCustomer, to_customer};
use super::{Error, Shared, TX, Trace, clamp, class, go_to, is_tcp, replace};
use crate::config::Config;
use crate::domain::Domain;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As an IPv6 packet.
    #[node("ip6-lookup")]
    Lookup,
    /// The same, to a next hop that is set.
    #[node("ip6-load-balance")]
    LoadBalance,
    /// It is cut before.
    #[node("ip4-map-t-fragment")]
    Fragment,
    /// It has come too far: its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// It is for no customer.
    Feature(Edge),
}

/// Bytes that a packet becomes longer by at most: IPv6's header in the place of IPv4's, and a fragment header.
const GROWS: usize = 28;

/// The node.
pub struct Ip4MapT {
    pub(crate) shared: Arc<Shared>,
}

fn ends(seen: &ParsedPacket<Ipv4Addr>, src: Ipv6Addr, dst: Ipv6Addr) -> Ends<Ipv6Addr> {
    Ends { src, dst, sport: seen.ends.sport, dport: seen.ends.dport }
}

impl Ip4MapT {
    fn translate(
        pkt: &mut Packet<'_>,
        (config, domain): (&Config, &Domain),
        seen: &ParsedPacket<Ipv4Addr>,
        customer: Ipv6Addr,
    ) -> Result<(), Error> {
        let settings = &config.settings;
        if is_tcp(seen) {
            clamp(settings, pkt, seen.header.into());
        }
        let sum = Sum::of(pkt);
        // RFC 7915, 4: what IPv4 allows to fragment this router fragments, as its own, of which no other node takes a hop off.
        let hops = if seen.dont_fragment { seen.hops } else { seen.hops.saturating_sub(1) };
        let how = HeaderFields { class: class(settings, seen.class), hops, sum, id: 0 };
        let total = usize::from(seen.header) + usize::from(seen.payload);
        pkt.truncate(total).ok_or(Error::Malformed)?;
        let to = ends(seen, domain.internet(seen.ends.src), customer);
        let head = if seen.kind == Kind::Error {
            let at = usize::from(seen.header) + ICMP_HEADER;
            let carried = carried4(pkt.data().get(at..).ok_or(Error::Malformed)?)?;
            // The packet it is about came from the customer.
            let src = domain.customer(carried.ends.src, carried.ends.sport).ok_or(Error::NoBinding)?;
            let carried_to = ends(&carried, src, domain.internet(carried.ends.dst));
            error_to6(pkt.data_mut(), (seen, &carried), (&to, &carried_to), &how)?
        } else {
            to6(pkt.data_mut(), seen, &to, &how)?
        };
        replace(pkt, head.strip, head.bytes())?;
        let meta = pkt.meta_mut();
        if meta.flags.has(Flags::GSO_TCP4) {
            meta.flags = meta.flags.without(Flags::GSO_TCP4).with(Flags::GSO_TCP6);
        }
        if !seen.dont_fragment {
            meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        }
        Ok(())
    }
}

impl PacketNode for Ip4MapT {
    const NAME: &'static str = "ip4-map-t";
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
        let hop = config.next_hops.ip6;
        let of_domain = Some(domain.parameters.mtu).filter(|mtu| *mtu > 0).unwrap_or(u16::MAX);
        let payload = pkt.meta().gso_piece().unwrap_or(seen.payload.into());
        let mtu = || {
            self.shared.mtu(hop.map_or(customer.into(), |hop| hop.address.into()), cx.guard()).min(of_domain)
        };
        if let Some(longest) = too_long4(&seen, payload, (LEAST_MTU.min(of_domain), mtu)) {
            IcmpError::too_big(longest).ask(pkt);
            return Ok(Next::IcmpError);
        }
        let bytes = pkt.len();
        if bytes + GROWS > of_domain.into()
            && pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD)
            && !pkt.flags().has(Flags::GSO)
        {
            // A device does not complete checksums of pieces.
            shoal_ip4::checksum::complete(pkt, usize::from(seen.header) + usize::from(seen.payload))
                .ok_or(Error::Malformed)?;
        }
        Self::translate(pkt, (config, domain), &seen, customer)?;
        self.shared.count(TX, cx.thread(), index, bytes);
        cx.count(Error::Valid, 1);
        let has_next_hop = go_to(hop, pkt);
        if pkt.len() > of_domain.into() && !pkt.flags().has(Flags::GSO) {
            *pkt.scratch::<Cut6>() = Cut6::new(of_domain, has_next_hop);
            return Ok(Next::Fragment);
        }
        Ok(if has_next_hop { Next::LoadBalance } else { Next::Lookup })
    }
}
