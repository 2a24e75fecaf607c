//! `ip6-local`: packets for this router. RFC 8200, 4 and 8.1; RFC 4443, 2.3.
//! ip6-lookup -> **ip6-local** -> ip6-icmp-input | registered protocols and ports | ip6-icmp-error | its arc's features

use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_infra::Guard;
use shoal_ip::node::LocalDelivery;
use shoal_ip::{Listeners, Source, Sources};
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::{Ip6Header, IpProtocol, UdpHeader, icmp6};

use crate::{Headers, IcmpError, Ip6Family};

mod upper;

use upper::{Upper, check, upper};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// ICMPv6.
    #[node("ip6-icmp-input")]
    Icmp,
    /// There is no listener, and the sender gets an error.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// The node that registered the protocol or port.
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
    /// multicast without a listener
    Multicast,
    /// ip6 source lookup miss
    #[at("ip6-input")]
    SrcLookupMiss,
}

/// Delivers packets.
pub struct Ip6Local {
    /// Who takes them.
    pub listeners: Arc<Listeners>,
    /// Says where packets come from.
    pub sources: Sources,
    /// Features of packets for this router.
    pub arc: FeatureArc,
}

/// There is no listener: the sender gets an error, unless it was sent to many.
fn refuse<N>(pkt: &mut Packet<'_>, why: Error, message: IcmpError, cx: &Cx<'_, N>) -> Result<Next, Error>
where
    N: PacketNode<Error = Error>,
{
    let group = pkt.header::<Ip6Header>().is_none_or(|ip| ip.dst().is_multicast());
    // RFC 4443, 2.4 (e.3): a sender to many gets errors about options only. That is checked where the error is made.
    if why != Error::Problem && (group || pkt.flags().has(Flags::LINK_MULTICAST)) {
        return Err(Error::Multicast);
    }
    cx.count(why, 1);
    message.for_us().ask(pkt);
    Ok(Next::IcmpError)
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
        other => match listeners.protocol(other).or_else(|| listeners.others()) {
            Some(edge) => Ok(Next::Registered(edge)),
            None if other == IpProtocol::TCP => refuse(pkt, Error::UnknownPort, IcmpError::PORT, cx),
            None => {
                // RFC 8200, 4: the pointer is at the unknown number.
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

impl Ip6Local {
    /// ICMPv6 judges for itself what it believes, and a neighbour may speak before it has more than a link-local address.
    fn check_source(&self, protocol: IpProtocol, pkt: &Packet<'_>, guard: Guard<'_>) -> Result<(), Error> {
        let src = pkt.header::<Ip6Header>().ok_or(Error::TooShort)?.src();
        if protocol == IpProtocol::ICMP6 || is_link_local(src) {
            return Ok(());
        }
        match self.sources.judge(src.into(), pkt, guard) {
            Source::Missing | Source::Own => Err(Error::SrcLookupMiss),
            Source::Reached => Ok(()),
        }
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
        self.check_source(upper.protocol, pkt, cx.guard())?;
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
