//! A packet in a node's hands: how it follows its session.

use shoal_buffer::Packet;
use shoal_nat::icmp::{Fault, Quoted};
use shoal_nat::ip6::End;
use shoal_nat::{Flow, Ip6PortPacket, Ip6Seen, Kind, ParsedPacket, Sum};
use shoal_wire::{FromBytes, Ip6Header, IpProtocol};

use crate::session_direction::{SessionDirection, Tuple};

/// Where a packet comes from and where it goes; of an ICMP error: as an answer to the packet it is about would.
#[inline(always)]
pub fn tuple(flow: &Flow) -> Tuple {
    let Flow { src, dst, sport, dport, .. } = *flow;
    Tuple { src, dst, sport, dport }
}

/// Whether a packet can have a session.
#[inline(always)]
pub fn has_session(flow: &Flow) -> bool {
    let has_ports = matches!(flow.kind, Kind::Tcp | Kind::Udp | Kind::Query) && !flow.is_later;
    let is_about = || {
        let protocol = flow.protocol;
        matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::ICMP | IpProtocol::ICMP6)
    };
    has_ports || (flow.kind == Kind::Error && is_about())
}

/// Where a packet goes that begins with an IP header.
pub fn destination(is_ip6: bool, bytes: &[u8]) -> Option<u128> {
    if is_ip6 {
        let (ip, _) = Ip6Header::ref_from_prefix(bytes).ok()?;
        return Some(ip.dst_u128());
    }
    let field: &[u8; 4] = bytes.get(16..)?.first_chunk()?;
    Some(u32::from_be_bytes(*field).into())
}

/// Whether the packet's way ends here: its sender gets an error before its tuple is another.
#[inline(always)]
pub fn is_expiring(is_ip6: bool, pkt: &Packet<'_>) -> bool {
    pkt.data().get(if is_ip6 { 7 } else { 8 }).is_some_and(|hops| *hops <= 1)
}

/// Translates a packet whose IP header is behind `front` bytes as one direction of its session says.
///
/// # Errors
/// It is cut short, which who read its flow has seen already.
#[inline]
pub fn rewrite(
    is_ip6: bool,
    pkt: &mut Packet<'_>,
    front: usize,
    flow: &Flow,
    way: &SessionDirection,
) -> Result<(), Fault> {
    let sum = Sum::of(pkt);
    let bytes = pkt.data_mut().get_mut(front..).ok_or(Fault::Short)?;
    if is_ip6 { rewrite6(bytes, flow, way.to(), sum) } else { rewrite4(bytes, flow, way, sum) }
}

#[inline(always)]
fn rewrite4(bytes: &mut [u8], flow: &Flow, way: &SessionDirection, sum: Sum) -> Result<(), Fault> {
    let seen = ParsedPacket::read(bytes).ok_or(Fault::Short)?;
    let header = seen.header.into();
    if seen.kind == Kind::Error {
        let quoted = Quoted::read(bytes, header, None)?;
        let to = way.to().ip4();
        let outer = (outer_source(seen.tuple.src.into(), flow, way.to()) as u32, to.dst);
        return quoted.write(bytes, header, outer, to);
    }
    way.rewrite().write(bytes, header, seen.kind, seen.first, sum).ok_or(Fault::Short)
}

/// An error that the other end itself sends comes from where its answers would come from; what a router on the way says, from there.
fn outer_source(src: u128, flow: &Flow, to: Tuple) -> u128 {
    if src == flow.src { to.src } else { src }
}

fn rewrite6(bytes: &mut [u8], flow: &Flow, to: Tuple, sum: Sum) -> Result<(), Fault> {
    let seen = Ip6Seen::read(bytes)?;
    if seen.quoted.is_some() {
        return error6(bytes, &seen, flow, to, sum);
    }
    for (end, new) in [(End::Source, to.src), (End::Destination, to.dst)] {
        if seen.address(end) != new {
            seen.replace(bytes, end, new, sum)?;
        }
    }
    if flow.kind == Kind::Query {
        return seen.replace_echo(bytes, to.sport, sum);
    }
    for (end, old, new) in [(End::Source, flow.sport, to.sport), (End::Destination, flow.dport, to.dport)] {
        if old != new {
            seen.replace_port(bytes, end, new, sum)?;
        }
    }
    Ok(())
}

/// The packet that an error carries is an answer's opposite.
fn error6(bytes: &mut [u8], seen: &Ip6Seen, flow: &Flow, to: Tuple, sum: Sum) -> Result<(), Fault> {
    let inner = to.reversed();
    for (end, new) in [(End::Source, inner.src), (End::Destination, inner.dst)] {
        seen.replace_quoted(bytes, end, new, sum)?;
    }
    if flow.protocol == IpProtocol::ICMP6 {
        seen.replace_quoted_echo(bytes, inner.sport, sum)?;
    } else {
        seen.replace_quoted_port(bytes, End::Source, inner.sport, sum)?;
        seen.replace_quoted_port(bytes, End::Destination, inner.dport, sum)?;
    }
    let outer = [(End::Source, outer_source(seen.src, flow, to)), (End::Destination, to.dst)];
    for (end, new) in outer {
        if seen.address(end) != new {
            seen.replace(bytes, end, new, sum)?;
        }
    }
    Ok(())
}

/// TCP or UDP that is no fragment and has no more headers than it needs.
pub struct PortPacket {
    /// From where to where.
    pub tuple: Tuple,
    /// Whether it is TCP. If not it is UDP.
    pub is_tcp: bool,
    /// TCP's flags; 0 of UDP.
    pub flags: u8,
    /// Time to live, or hops that are left.
    pub hops: u8,
}

impl PortPacket {
    /// Reads a packet whose IP header is at the front.
    #[inline(always)]
    pub fn read(is_ip6: bool, bytes: &[u8]) -> Option<PortPacket> {
        if is_ip6 {
            let Ip6PortPacket { src, dst, sport, dport, is_tcp, flags, hops } = Ip6PortPacket::read(bytes)?;
            return Some(PortPacket { tuple: Tuple { src, dst, sport, dport }, is_tcp, flags, hops });
        }
        let shoal_nat::PortPacket { addresses, ports, is_tcp, flags, ttl } =
            shoal_nat::PortPacket::read(bytes)?;
        let tuple = Tuple {
            src: (addresses >> 32).into(),
            dst: u128::from(addresses as u32),
            sport: (ports >> 16) as u16,
            dport: ports as u16,
        };
        Some(PortPacket { tuple, is_tcp, flags, hops: ttl })
    }

    /// Its protocol.
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        if self.is_tcp { 6 } else { 17 }
    }
}
