//! How a packet reaches its server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_buffer::{Flags, Packet};
use shoal_nat::icmp::Quoted;
use shoal_nat::ip6::End;
use shoal_nat::{Ip6Seen, Kind, ParsedPacket, Rewrite, Sum};
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol};

use super::Error;

/// As VPP's: the TTL of tunnel packets.
const HOPS: u8 = 128;
/// Bytes of a GRE header without options (RFC 2784).
const GRE: usize = 4;
const GRE_OVER_IP: IpProtocol = IpProtocol(47);

/// Bytes of the IP packet at the front, and its class of service.
fn length(is_ip6: bool, pkt: &Packet<'_>) -> Option<(usize, u8)> {
    if is_ip6 {
        let ip = pkt.header::<Ip6Header>()?;
        Some((Ip6Header::LEN + usize::from(ip.payload_length()), ip.traffic_class()))
    } else {
        let ip = pkt.header::<Ip4Header>()?;
        Some((ip.total_length().into(), ip.tos()))
    }
}

/// A packet that leaves work to a device which the device could not do any more behind the router.
fn finish(is_ip6: bool, pkt: &mut Packet<'_>) -> Result<u8, Error> {
    if pkt.flags().has(Flags::GSO) {
        return Err(Error::TooLarge);
    }
    let (total, class) = length(is_ip6, pkt).ok_or(Error::Malformed)?;
    if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) {
        shoal_ip4::checksum::complete(pkt, total).ok_or(Error::Malformed)?;
    }
    pkt.truncate(total).ok_or(Error::Malformed)?;
    Ok(class)
}

/// Puts bytes in front of a packet, the last of them a GRE header.
fn push(pkt: &mut Packet<'_>, is_ip6: bool, ip: &[u8]) -> Result<(), Error> {
    pkt.push(ip.len() + GRE).ok_or(Error::TooLarge)?;
    let front = pkt.data_mut().get_mut(..ip.len() + GRE).ok_or(Error::Malformed)?;
    let (header, gre) = front.split_at_mut(ip.len());
    header.copy_from_slice(ip);
    gre.copy_from_slice(&if is_ip6 { [0, 0, 0x86, 0xdd] } else { [0, 0, 0x08, 0] });
    let at = pkt.current();
    pkt.meta_mut().l3 = at;
    Ok(())
}

/// Puts a packet into a GRE tunnel over IPv4. The packet itself stays as it is.
///
/// # Errors
/// It is malformed, or too large.
pub fn gre4(
    is_ip6: bool,
    pkt: &mut Packet<'_>,
    (src, dst): (Ipv4Addr, Ipv4Addr),
    identification: u16,
) -> Result<(), Error> {
    let class = finish(is_ip6, pkt)?;
    let total = u16::try_from(pkt.len() + Ip4Header::LEN + GRE).map_err(|_| Error::TooLarge)?;
    let mut ip = Ip4Header::new(src, dst, GRE_OVER_IP, HOPS, total);
    // RFC 2983, RFC 6040: class and congestion go along.
    ip.rewrite_tos(class);
    ip.set_id(identification);
    ip.update_checksum();
    push(pkt, is_ip6, ip.as_bytes())
}

/// The same over IPv6.
///
/// # Errors
/// As [`gre4`].
pub fn gre6(is_ip6: bool, pkt: &mut Packet<'_>, (src, dst): (Ipv6Addr, Ipv6Addr)) -> Result<(), Error> {
    let class = finish(is_ip6, pkt)?;
    let length = u16::try_from(pkt.len() + GRE).map_err(|_| Error::TooLarge)?;
    // One that may have to be cut is this router's own, of which no other node takes a hop off.
    let may_be_cut = pkt.len() + GRE + Ip6Header::LEN > Ip6Header::MIN_MTU;
    let hops = if may_be_cut { HOPS - 1 } else { HOPS };
    let mut ip = Ip6Header::new(src, dst, GRE_OVER_IP, hops, length);
    ip.set_traffic_class(class);
    push(pkt, is_ip6, ip.as_bytes())?;
    if may_be_cut {
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    }
    Ok(())
}

/// Sends a packet to a server that knows by the class of service which virtual address it was for. The server puts that address
/// back, so the transport checksum stays.
///
/// # Errors
/// It is malformed, or leaves its checksum to a device.
pub fn l3dsr(pkt: &mut Packet<'_>, server: Ipv4Addr, dscp: u8) -> Result<(), Error> {
    finish(false, pkt)?;
    let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::Malformed)?;
    let congestion = ip.tos() & 3;
    ip.rewrite_dst(server);
    ip.rewrite_tos(dscp << 2 | congestion);
    Ok(())
}

/// An address and a port.
pub type Place<A> = (A, u16);

/// One end of an IPv4 packet becomes another: `end` is the service's. Of an ICMP error it is the other end of the packet that it
/// carries, too.
///
/// # Errors
/// It is malformed, or of no protocol that is translated.
pub fn nat4(pkt: &mut Packet<'_>, end: End, (address, port): Place<Ipv4Addr>) -> Result<(), Error> {
    let sum = Sum::of(pkt);
    let bytes = pkt.data_mut();
    let seen = ParsedPacket::read(bytes).ok_or(Error::Malformed)?;
    let header = usize::from(seen.header);
    let address = address.to_bits();
    let placed = |of| match end {
        End::Destination => shoal_nat::Tuple { dst: address, dport: port, ..of },
        End::Source => shoal_nat::Tuple { src: address, sport: port, ..of },
    };
    match seen.kind {
        Kind::Tcp | Kind::Udp => Rewrite::new(seen.tuple, placed(seen.tuple), seen.protocol)
            .write(bytes, header, seen.kind, seen.first, sum)
            .ok_or(Error::Malformed),
        Kind::Error => {
            let quoted = Quoted::read(bytes, header, None)?;
            let outer = match end {
                End::Destination => (seen.tuple.src, address),
                End::Source => (address, seen.tuple.dst),
            };
            Ok(quoted.write(bytes, header, outer, placed(quoted.answer))?)
        }
        _ => Err(Error::ProtoNotSupported),
    }
}

/// The same of IPv6.
///
/// # Errors
/// As [`nat4`].
pub fn nat6(pkt: &mut Packet<'_>, end: End, (address, port): Place<Ipv6Addr>) -> Result<(), Error> {
    let sum = Sum::of(pkt);
    let bytes = pkt.data_mut();
    let seen = Ip6Seen::read(bytes)?;
    if seen.quoted.is_some() {
        // The service is at the other end of the packet that the error carries.
        seen.replace_quoted(bytes, end.other(), address.to_bits(), sum)?;
        seen.replace_quoted_port(bytes, end.other(), port, sum)?;
        // The error's checksum has changed, which is read again.
        return Ok(Ip6Seen::read(bytes)?.replace(bytes, end, address.to_bits(), sum)?);
    }
    if !matches!(seen.protocol, IpProtocol::TCP | IpProtocol::UDP) {
        return Err(Error::ProtoNotSupported);
    }
    seen.replace(bytes, end, address.to_bits(), sum)?;
    Ok(seen.replace_port(bytes, end, port, sum)?)
}

/// A server's IPv4 address.
///
/// # Errors
/// It has none: the control plane lets no other in.
pub fn ip4(server: IpAddr) -> Result<Ipv4Addr, Error> {
    match server {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(Error::NoServer),
    }
}

/// A server's IPv6 address.
///
/// # Errors
/// As [`ip4`].
pub fn ip6(server: IpAddr) -> Result<Ipv6Addr, Error> {
    match server {
        IpAddr::V6(address) => Ok(address),
        IpAddr::V4(_) => Err(Error::NoServer),
    }
}
