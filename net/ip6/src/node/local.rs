//! `ip6-local`: packets for this router. RFC 8200, 4 and 8.1; RFC 4443, 2.3.
//! ip6-lookup -> **ip6-local** -> ip6-icmp-input | registered protocols and ports | ip6-icmp-error | its arc's features

use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_ip::Listeners;
use shoal_ip::node::LocalDelivery;
use shoal_wire::ip6_ext::{Ip6ExtError, Reader, is_extension, walk};
use shoal_wire::{Ip6Header, IpProtocol, UdpHeader, checksum::Sum, icmp6};

use crate::{Headers, IcmpError, Ip6Family};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// ICMPv6.
    #[node("ip6-icmp-input")]
    Icmp,
    /// Nobody listens, and the sender is told.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// Whoever registered the protocol or port.
    Registered(Edge),
    /// A feature.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip6 headers are cut short
    TooShort,
    /// fragments to this router are not put together
    Fragment,
    /// too many or too long extension headers
    TooMany,
    /// unknown destination option asks for discard
    Discard,
    /// extension header is unknown or wrong
    #[severity(warn)]
    Problem,
    /// unknown ip protocol
    #[severity(warn)]
    UnknownProtocol,
    /// no listener for dst port
    #[severity(warn)]
    UnknownPort,
    /// nothing follows the headers
    #[severity(info)]
    NoNextHeader,
    /// inconsistent udp/ip lengths
    UdpLength,
    /// bad udp checksum
    UdpChecksum,
    /// bad tcp checksum
    TcpChecksum,
    /// bad icmp checksum
    IcmpChecksum,
    /// multicast nobody listens to
    Multicast,
}

/// Delivers packets.
pub struct Ip6Local {
    /// Who takes them.
    pub listeners: Arc<Listeners>,
    /// Features of packets for this router.
    pub arc: FeatureArc,
}

/// The upper layer: which, where it begins and how long it is, in bytes; and where its number stands.
#[derive(Clone, Copy)]
struct Upper {
    protocol: IpProtocol,
    at: usize,
    len: usize,
    named_at: usize,
}

/// Goes through the extension headers; `Err(Ok(_))` is an answer to the sender.
fn upper(pkt: &Packet<'_>) -> Result<Upper, Result<IcmpError, Error>> {
    let ip = pkt.header::<Ip6Header>().ok_or(Err(Error::TooShort))?;
    let total = Ip6Header::LEN + usize::from(ip.payload_length());
    let (protocol, at, named_at) = if is_extension(ip.protocol()) {
        let chain = walk(pkt.data(), Reader::Destination).map_err(|e| match e {
            Ip6ExtError::Truncated { .. } => Err(Error::TooShort),
            Ip6ExtError::Discard { .. } => Err(Error::Discard),
            Ip6ExtError::Problem(problem) => Ok(IcmpError::parameter_problem(problem)),
            _ => Err(Error::TooMany),
        })?;
        // RFC 6946: a fragment of one piece is a whole packet.
        let whole =
            |f: shoal_wire::ip6_ext::Ip6Fragment| f.header.offset() == 0 && !f.header.more_fragments();
        if chain.fragment.is_some_and(|f| !whole(f)) {
            return Err(Err(Error::Fragment));
        }
        (chain.protocol, chain.offset, chain.next_header_at)
    } else {
        (ip.protocol(), Ip6Header::LEN, Ip6Header::NEXT_HEADER_AT)
    };
    if total > pkt.len() {
        return Err(Err(Error::TooShort));
    }
    let len = total.checked_sub(at).ok_or(Err(Error::TooShort))?;
    Ok(Upper { protocol, at, len, named_at })
}

/// Whether the sum over pseudo-header and `len` bytes of the upper layer is right, unless somebody saw to it already.
fn checksum_ok(pkt: &Packet<'_>, upper: Upper, len: usize) -> bool {
    if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::L4_CHECKSUM_OK)) {
        return true;
    }
    let Some(ip) = pkt.header::<Ip6Header>() else { return false };
    let mut sum = Sum::pseudo_ip6(ip.src(), ip.dst(), upper.protocol, len as u32);
    let (mut skip, mut left) = (upper.at, len);
    for segment in pkt.segments() {
        let bytes = segment.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(segment.len());
        let bytes = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        left -= bytes.len();
        sum.add(bytes);
    }
    left == 0 && sum.folded() == 0xffff
}

/// Nobody takes it: the sender is told, unless it was sent to many.
fn refuse<N>(pkt: &mut Packet<'_>, why: Error, message: IcmpError, cx: &Cx<'_, N>) -> Result<Next, Error>
where
    N: PacketNode<Error = Error>,
{
    let group = pkt.header::<Ip6Header>().is_none_or(|ip| ip.dst().is_multicast());
    // RFC 4443, 2.4 (e.3): only an option may be complained about to whoever sends to many. That is checked where the
    // error is made.
    if why != Error::Problem && (group || pkt.flags().has(Flags::LINK_MULTICAST)) {
        return Err(Error::Multicast);
    }
    cx.count(why, 1);
    message.for_us().ask(pkt);
    Ok(Next::IcmpError)
}

/// Whether what the upper layer's header says of its packet is true.
fn check(pkt: &Packet<'_>, upper: Upper) -> Result<(), Error> {
    match upper.protocol {
        IpProtocol::ICMP6 if !checksum_ok(pkt, upper, upper.len) => Err(Error::IcmpChecksum),
        IpProtocol::TCP if !checksum_ok(pkt, upper, upper.len) => Err(Error::TcpChecksum),
        IpProtocol::IP6_NONXT => Err(Error::NoNextHeader),
        IpProtocol::UDP => {
            let udp = pkt.header_at::<UdpHeader>(upper.at).ok_or(Error::UdpLength)?;
            let length = usize::from(udp.length());
            if length < UdpHeader::LEN || length > upper.len {
                return Err(Error::UdpLength);
            }
            // RFC 8200, 8.1: there is no UDP without a sum.
            if udp.checksum() == 0 || !checksum_ok(pkt, upper, length) {
                return Err(Error::UdpChecksum);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Where a packet goes that was found in order: by its protocol, and by its port if that is UDP.
#[inline(always)]
fn dispatch<N>(
    listeners: &Listeners,
    upper: Upper,
    pkt: &mut Packet<'_>,
    cx: &Cx<'_, N>,
) -> Result<Next, Error>
where
    N: PacketNode<Error = Error>,
{
    match upper.protocol {
        IpProtocol::ICMP6 => Ok(Next::Icmp),
        IpProtocol::UDP => {
            let port = pkt.header_at::<UdpHeader>(upper.at).ok_or(Error::UdpLength)?.dst_port();
            match listeners.udp(port) {
                Some(edge) => Ok(Next::Registered(edge)),
                None => refuse(pkt, Error::UnknownPort, IcmpError::PORT, cx),
            }
        }
        other => match listeners.protocol(other) {
            Some(edge) => Ok(Next::Registered(edge)),
            None if other == IpProtocol::TCP => refuse(pkt, Error::UnknownPort, IcmpError::PORT, cx),
            None => {
                // RFC 8200, 4: the pointer is at the number nobody knows.
                let (code, pointer) = (icmp6::code::UNRECOGNIZED_NEXT_HEADER, upper.named_at as u32);
                let problem = icmp6::ParameterProblem { code, pointer };
                refuse(pkt, Error::UnknownProtocol, IcmpError::parameter_problem(problem), cx)
            }
        },
    }
}

/// The same of a packet that features may have made another of.
fn deliver<N>(listeners: &Listeners, pkt: &mut Packet<'_>, cx: &Cx<'_, N>) -> Result<Next, Error>
where
    N: PacketNode<Error = Error>,
{
    match upper(pkt) {
        Ok(upper) => dispatch(listeners, upper, pkt, cx),
        Err(Ok(message)) => refuse(pkt, Error::Problem, message, cx),
        Err(Err(why)) => Err(why),
    }
}

impl PacketNode for Ip6Local {
    const NAME: &'static str = "ip6-local";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let upper = match upper(pkt) {
            Ok(upper) => upper,
            Err(Ok(message)) => return refuse(pkt, Error::Problem, message, cx),
            Err(Err(Error::Fragment)) => {
                return self.listeners.fragments().map(Next::Registered).ok_or(Error::Fragment);
            }
            Err(Err(why)) => return Err(why),
        };
        // Padding of short frames is not part of the packet.
        pkt.truncate(upper.at + upper.len).ok_or(Error::TooShort)?;
        let l4 = i16::try_from(i32::from(pkt.current()) + upper.at as i32).map_err(|_| Error::TooMany)?;
        pkt.meta_mut().l4 = l4;
        check(pkt, upper)?;
        if let Some(feature) = cx.start_arc(&self.arc, pkt.rx(), pkt) {
            return Ok(Next::Feature(feature));
        }
        dispatch(&self.listeners, upper, pkt, cx)
    }
}

impl LocalDelivery for Ip6Local {
    type Family = Ip6Family;

    fn deliver<N: PacketNode<Error = Error>>(
        listeners: &Listeners,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, N>,
    ) -> Result<Next, Error> {
        deliver(listeners, pkt, cx)
    }
}
