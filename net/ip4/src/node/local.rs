//! `ip4-local`: packets for this router. RFC 1122, 3.2.
//! ip4-lookup -> **ip4-local** -> ip4-icmp-input | registered protocols and ports | ip4-icmp-error | features of
//! `ip4-local`, and ip4-local-end-of-arc behind them

use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_ip::node::LocalDelivery;
use shoal_ip::{Listeners, Source, Sources};
use shoal_wire::{Ip4Header, IpProtocol, UdpHeader};

use crate::{Headers, IcmpError, Ip4Family};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// ICMP.
    #[node("ip4-icmp-input")]
    Icmp,
    /// There is no listener, and the sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// The node that registered the protocol or port.
    Registered(Edge),
    /// A feature.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 header is cut short
    TooShort,
    /// fragments to this router are not put together
    Fragment,
    /// unknown ip protocol
    #[severity(warn)]
    UnknownProtocol,
    /// no listener for dst port
    #[severity(warn)]
    UnknownPort,
    /// udp length is wrong
    UdpLength,
    /// udp checksum is wrong
    UdpChecksum,
    /// broadcast without a listener
    Broadcast,
    /// ip4 spoofed local-address packet drops
    SpoofedLocalPackets,
    /// ip4 source lookup miss
    SrcLookupMiss,
}

/// Delivers packets.
pub struct Ip4Local {
    /// Who takes them.
    pub listeners: Arc<Listeners>,
    /// Says where packets come from.
    pub sources: Sources,
    /// Features of packets for this router.
    pub arc: FeatureArc,
}

/// Whether what a UDP header says of its packet is true.
fn check_udp(pkt: &Packet<'_>, header: usize, total: usize) -> Result<(), Error> {
    let udp = pkt.header_at::<UdpHeader>(header).ok_or(Error::UdpLength)?;
    let (length, sum) = (usize::from(udp.length()), udp.checksum());
    if length < UdpHeader::LEN || length > total - header {
        return Err(Error::UdpLength);
    }
    let unchecked = Flags::L4_CHECKSUM_OFFLOAD.with(Flags::L4_CHECKSUM_OK);
    if sum != 0 && !pkt.flags().has(unchecked) && !udp_checksum_ok(pkt, header, length) {
        return Err(Error::UdpChecksum);
    }
    Ok(())
}

/// Where a packet goes that was found in order: by its protocol, and by its port if that is UDP. Features may have made
/// another packet of it.
#[inline(always)]
fn deliver<N>(listeners: &Listeners, pkt: &mut Packet<'_>, cx: &Cx<'_, N>) -> Result<Next, Error>
where
    N: PacketNode<Error = Error>,
{
    let ip = pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
    let (protocol, header) = (ip.protocol(), ip.header_len());
    match protocol {
        IpProtocol::ICMP => Ok(Next::Icmp),
        IpProtocol::UDP => {
            let port = pkt.header_at::<UdpHeader>(header).ok_or(Error::UdpLength)?.dst_port();
            match listeners.udp(port) {
                Some(edge) => Ok(Next::Registered(edge)),
                None => refuse(pkt, Error::UnknownPort, IcmpError::PORT, cx),
            }
        }
        other => match listeners.protocol(other).or_else(|| listeners.others()) {
            Some(edge) => Ok(Next::Registered(edge)),
            None if other == IpProtocol::TCP => refuse(pkt, Error::UnknownPort, IcmpError::PORT, cx),
            None => refuse(pkt, Error::UnknownProtocol, IcmpError::PROTOCOL, cx),
        },
    }
}

/// Whether the checksum over pseudo-header and UDP is right.
fn udp_checksum_ok(pkt: &Packet<'_>, header: usize, length: usize) -> bool {
    let Some(ip) = pkt.header::<Ip4Header>() else { return false };
    let mut sum = shoal_wire::checksum::Sum::pseudo_ip4(ip.src(), ip.dst(), IpProtocol::UDP, length as u16);
    let (mut skip, mut left) = (header, length);
    for segment in pkt.segments() {
        let bytes = segment.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(segment.len());
        let bytes = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        left -= bytes.len();
        sum.add(bytes);
    }
    sum.folded() == 0xffff
}

/// There is no listener: the sender gets an error, unless it was sent to many.
fn refuse<N>(pkt: &mut Packet<'_>, why: Error, message: IcmpError, cx: &Cx<'_, N>) -> Result<Next, Error>
where
    N: PacketNode<Error = Error>,
{
    if pkt.flags().has(Flags::LINK_MULTICAST) {
        return Err(Error::Broadcast);
    }
    cx.count(why, 1);
    message.ask(pkt);
    Ok(Next::IcmpError)
}

impl PacketNode for Ip4Local {
    const NAME: &'static str = "ip4-local";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let ip = pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
        let (protocol, header, total) = (ip.protocol(), ip.header_len(), usize::from(ip.total_length()));
        let (src, dst) = (ip.src(), ip.dst());
        if ip.is_fragment() {
            return self.listeners.fragments().map(Next::Registered).ok_or(Error::Fragment);
        }
        if total < header || total > pkt.len() {
            return Err(Error::TooShort);
        }
        // Padding of short frames is not part of the packet.
        pkt.truncate(total).ok_or(Error::TooShort)?;
        let l4 = pkt.current() + header as i16;
        pkt.meta_mut().l4 = l4;
        if protocol == IpProtocol::UDP {
            check_udp(pkt, header, total)?;
        }
        // All of the link may be asked by a host that has no address yet.
        match self.sources.judge(src.into(), pkt, cx.guard()) {
            Source::Own => return Err(Error::SpoofedLocalPackets),
            Source::Missing if !dst.is_broadcast() => return Err(Error::SrcLookupMiss),
            Source::Missing | Source::Reached => {}
        }
        if let Some(feature) = cx.start_arc(&self.arc, pkt.rx(), pkt) {
            return Ok(Next::Feature(feature));
        }
        deliver(&self.listeners, pkt, cx)
    }
}

impl LocalDelivery for Ip4Local {
    type Family = Ip4Family;

    fn deliver<N: PacketNode<Error = Error>>(
        listeners: &Listeners,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, N>,
    ) -> Result<Next, Error> {
        deliver(listeners, pkt, cx)
    }
}
