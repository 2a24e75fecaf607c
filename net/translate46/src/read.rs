//! What a packet is.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::Kind;
use shoal_nat::tuple::{ICMP, TCP, UDP};

use crate::ICMP6;

/// From where to where: addresses, and ports in host order. An ICMP query has its identifier in both ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ends<A> {
    /// Source address.
    pub src: A,
    /// Destination address.
    pub dst: A,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Which datagram.
    pub id: u32,
    /// Where the part begins, in units of eight bytes.
    pub offset: u16,
    /// Whether parts follow.
    pub more: bool,
}

/// What was read of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedPacket<A> {
    /// From where to where; of a fragment that is not the first, with ports of 0.
    pub ends: Ends<A>,
    /// The protocol above IP and its extension headers.
    pub protocol: u8,
    /// What it is.
    pub kind: Kind,
    /// TOS or traffic class.
    pub class: u8,
    /// Time to live or hop limit.
    pub hops: u8,
    /// Bytes in front of the transport header: all of them are taken off.
    pub header: u16,
    /// Bytes from the transport header on, as the IP header says.
    pub payload: u16,
    /// Of IPv4: whether it must not be fragmented.
    pub dont_fragment: bool,
    /// Of a fragment: which one. In IPv6, also of a datagram in one part that has a fragment header.
    pub fragment: Option<Fragment>,
}

impl<A> ParsedPacket<A> {
    /// Whether the transport header is here.
    pub fn is_first(&self) -> bool {
        self.fragment.is_none_or(|fragment| fragment.offset == 0)
    }

    /// Whether a part of the datagram is elsewhere.
    pub fn is_part(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0 || fragment.more)
    }
}

/// Why a packet is not translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is cut short, or its lengths contradict each other.
    Malformed,
    /// It would be longer than the other protocol allows.
    TooLong,
    /// RFC 7915, 5.1: its routing header has segments left.
    SegmentsLeft,
    /// RFC 7915, 1.2: a part of an ICMP message: the checksum of the other protocol needs all of it.
    IcmpFragment,
    /// RFC 7915, 4.2 and 5.2: the other protocol has no such ICMP message.
    IcmpType,
    /// RFC 7915, 4.5: UDP without a checksum whose bytes are not all here.
    NoChecksum,
}

/// How much of a transport header must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredHeader {
    /// All that is translated.
    Whole,
    /// RFC 792: eight bytes.
    Carried,
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value.to_be_bytes();
    Some(())
}

/// Reads an IPv4 packet. Its checksum is not looked at.
///
/// # Errors
/// It is cut short or contradicts itself.
pub fn read4(bytes: &[u8]) -> Result<ParsedPacket<Ipv4Addr>, Fault> {
    four(bytes, RequiredHeader::Whole)
}

/// Reads the IPv4 packet that an ICMP error carries, which begins `bytes`; its end may be missing.
///
/// # Errors
/// It is cut short in its headers or contradicts itself.
pub fn carried4(bytes: &[u8]) -> Result<ParsedPacket<Ipv4Addr>, Fault> {
    four(bytes, RequiredHeader::Carried)
}

/// Reads an IPv6 packet.
///
/// # Errors
/// It is cut short, contradicts itself or has a routing header with segments left.
pub fn read6(bytes: &[u8]) -> Result<ParsedPacket<Ipv6Addr>, Fault> {
    six(bytes, RequiredHeader::Whole)
}

/// Reads the IPv6 packet that an ICMP error carries, which begins `bytes`; its end may be missing.
///
/// # Errors
/// It is cut short in its headers or contradicts itself.
pub fn carried6(bytes: &[u8]) -> Result<ParsedPacket<Ipv6Addr>, Fault> {
    six(bytes, RequiredHeader::Carried)
}

fn four(bytes: &[u8], need: RequiredHeader) -> Result<ParsedPacket<Ipv4Addr>, Fault> {
    let ip: &[u8; 20] = bytes.first_chunk().ok_or(Fault::Malformed)?;
    let header = u16::from(ip[0] & 15) * 4;
    let total = u16::from_be_bytes([ip[2], ip[3]]);
    if ip[0] >> 4 != 4 || header < 20 || total < header {
        return Err(Fault::Malformed);
    }
    let flags = u16::from_be_bytes([ip[6], ip[7]]);
    let id = u32::from(u16::from_be_bytes([ip[4], ip[5]]));
    let (offset, more) = (flags & 0x1fff, flags & 0x2000 != 0);
    let mut seen = ParsedPacket {
        ends: Ends {
            src: Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]),
            dst: Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]),
            sport: 0,
            dport: 0,
        },
        protocol: ip[9],
        kind: Kind::Other,
        class: ip[1],
        hops: ip[8],
        header,
        payload: total - header,
        dont_fragment: flags & 0x4000 != 0,
        fragment: (more || offset != 0).then_some(Fragment { id, offset, more }),
    };
    transport(&mut seen, bytes, ICMP, need).ok_or(Fault::Malformed)?;
    Ok(seen)
}

fn six(bytes: &[u8], need: RequiredHeader) -> Result<ParsedPacket<Ipv6Addr>, Fault> {
    let ip: &[u8; 40] = bytes.first_chunk().ok_or(Fault::Malformed)?;
    if ip[0] >> 4 != 6 {
        return Err(Fault::Malformed);
    }
    let address = |at: usize| {
        let bytes: Option<&[u8; 16]> = ip.get(at..).and_then(|bytes| bytes.first_chunk());
        Ipv6Addr::from(bytes.copied().unwrap_or_default())
    };
    let chain = extensions(bytes, ip[6])?;
    let payload = usize::from(u16::from_be_bytes([ip[4], ip[5]])) + 40;
    let payload = payload.checked_sub(chain.header).ok_or(Fault::Malformed)?;
    let mut seen = ParsedPacket {
        ends: Ends { src: address(8), dst: address(24), sport: 0, dport: 0 },
        protocol: chain.protocol,
        kind: Kind::Other,
        class: ip[0] << 4 | ip[1] >> 4,
        hops: ip[7],
        header: u16::try_from(chain.header).map_err(|_| Fault::Malformed)?,
        payload: u16::try_from(payload).map_err(|_| Fault::Malformed)?,
        dont_fragment: false,
        fragment: chain.fragment,
    };
    transport(&mut seen, bytes, ICMP6, need).ok_or(Fault::Malformed)?;
    Ok(seen)
}

struct Chain {
    protocol: u8,
    header: usize,
    fragment: Option<Fragment>,
}

/// RFC 7915, 5.1: hop-by-hop options, destination options and routing headers are skipped.
fn extensions(bytes: &[u8], next: u8) -> Result<Chain, Fault> {
    let mut chain = Chain { protocol: next, header: 40, fragment: None };
    while matches!(chain.protocol, 0 | 43 | 44 | 60) {
        // What follows the header of a later fragment is the middle of something.
        if chain.fragment.is_some_and(|fragment| fragment.offset != 0) {
            break;
        }
        let header: &[u8; 8] =
            bytes.get(chain.header..).and_then(|rest| rest.first_chunk()).ok_or(Fault::Malformed)?;
        let length = match chain.protocol {
            43 if header[3] != 0 => return Err(Fault::SegmentsLeft),
            44 if chain.fragment.is_some() => return Err(Fault::Malformed),
            44 => {
                let flags = u16::from_be_bytes([header[2], header[3]]);
                let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                chain.fragment = Some(Fragment { id, offset: flags >> 3, more: flags & 1 != 0 });
                8
            }
            _ => usize::from(header[1]) * 8 + 8,
        };
        chain.protocol = header[0];
        chain.header += length;
    }
    if bytes.len() < chain.header { Err(Fault::Malformed) } else { Ok(chain) }
}

/// Reads the transport header, if it is here.
fn transport<A>(seen: &mut ParsedPacket<A>, bytes: &[u8], icmp: u8, need: RequiredHeader) -> Option<()> {
    let first = seen.is_first();
    seen.kind = match seen.protocol {
        TCP => Kind::Tcp,
        UDP => Kind::Udp,
        protocol if protocol == icmp => Kind::OtherIcmp,
        _ => Kind::Other,
    };
    if !first || seen.kind == Kind::Other {
        return Some(());
    }
    let least = match (need, seen.kind) {
        (RequiredHeader::Whole, Kind::Tcp) => 20,
        _ => 8,
    };
    if seen.payload < least {
        return None;
    }
    let bytes = bytes.get(usize::from(seen.header)..)?;
    let bytes = bytes.get(..usize::from(least)).map(|_| bytes)?;
    match seen.kind {
        Kind::Tcp | Kind::Udp => {
            (seen.ends.sport, seen.ends.dport) = (word(bytes, 0)?, word(bytes, 2)?);
        }
        _ => {
            let kind = *bytes.first()?;
            let (query, error) = match icmp {
                ICMP => (shoal_nat::tuple::is_query(kind), shoal_nat::tuple::is_error(kind)),
                _ => (matches!(kind, 128 | 129), kind < 128),
            };
            if query {
                let id = word(bytes, 4)?;
                (seen.ends.sport, seen.ends.dport) = (id, id);
                seen.kind = Kind::Query;
            } else if error {
                seen.kind = Kind::Error;
            }
        }
    }
    Some(())
}
