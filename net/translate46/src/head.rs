//! What a packet's headers become.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::tuple::ICMP;
use shoal_nat::{Delta, Kind, Sum};
use shoal_wire::checksum;

use crate::ICMP6;
use crate::read::{Ends, Fault, Fragment, ParsedPacket, word};
use crate::transport::{Edit, complete_udp, ports, pseudo6};

/// The longest: IPv6, a fragment header, ICMPv6, and both again of the packet it carries.
const MOST: usize = 48 + 8 + 48;
/// RFC 7915, 5.1: an IPv4 packet that is not longer may be fragmented on its way.
pub(crate) const SMALL: usize = 1260;

/// What is taken off a packet's front, and what is put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; MOST],
    len: u8,
    /// Bytes to take off first.
    pub strip: usize,
}

impl Head {
    pub(crate) const fn new(strip: usize) -> Self {
        Head { bytes: [0; MOST], len: 0, strip }
    }

    /// Bytes to put on.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..usize::from(self.len)).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, more: &[u8]) -> Result<(), Fault> {
        let at = usize::from(self.len);
        let to = self.bytes.get_mut(at..at + more.len()).ok_or(Fault::TooLong)?;
        to.copy_from_slice(more);
        self.len += more.len() as u8;
        Ok(())
    }
}

/// What a packet's new header says besides addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// TOS or traffic class.
    pub class: u8,
    /// Time to live or hop limit.
    pub hops: u8,
    /// What the transport checksum is.
    pub sum: Sum,
    /// To IPv4: the identification of a packet that may be fragmented. To IPv6: of no meaning.
    pub id: u16,
}

impl HeaderFields {
    /// As the packet had it. RFC 7915 wants `hops` to become less by one, which is for a router to do.
    pub const fn of<A>(seen: &ParsedPacket<A>, id: u16) -> Self {
        HeaderFields { class: seen.class, hops: seen.hops, sum: Sum::Whole, id }
    }
}

/// The protocol number in IPv6.
const fn protocol6(protocol: u8) -> u8 {
    if protocol == ICMP { ICMP6 } else { protocol }
}

/// The protocol number in IPv4.
const fn protocol4(protocol: u8) -> u8 {
    if protocol == ICMP6 { ICMP } else { protocol }
}

/// Puts an IPv6 header on, and a fragment header of a fragment (RFC 7915, 4.1).
pub(crate) fn push6(
    head: &mut Head,
    seen: &ParsedPacket<Ipv4Addr>,
    to: &Ends<Ipv6Addr>,
    (how, payload): (&HeaderFields, usize),
) -> Result<(), Fault> {
    let fragment = seen.fragment;
    let length =
        u16::try_from(payload + if fragment.is_some() { 8 } else { 0 }).map_err(|_| Fault::TooLong)?;
    let protocol = protocol6(seen.protocol);
    let [high, low] = length.to_be_bytes();
    let next = if fragment.is_some() { 44 } else { protocol };
    head.push(&[0x60 | how.class >> 4, how.class << 4, 0, 0, high, low, next, how.hops])?;
    head.push(&to.src.octets())?;
    head.push(&to.dst.octets())?;
    if let Some(Fragment { id, offset, more }) = fragment {
        let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
        let [a, b, c, d] = id.to_be_bytes();
        head.push(&[protocol, 0, high, low, a, b, c, d])?;
    }
    Ok(())
}

/// Puts an IPv4 header on (RFC 7915, 5.1).
pub(crate) fn push4(
    head: &mut Head,
    seen: &ParsedPacket<Ipv6Addr>,
    to: &Ends<Ipv4Addr>,
    (how, payload): (&HeaderFields, usize),
) -> Result<(), Fault> {
    let total = payload + 20;
    let [high, low] = u16::try_from(total).map_err(|_| Fault::TooLong)?.to_be_bytes();
    let (id, flags) = match seen.fragment {
        Some(Fragment { id, offset, more }) => (id as u16, offset | if more { 0x2000 } else { 0 }),
        None if total <= SMALL => (how.id, 0),
        None => (0, 0x4000),
    };
    let ([i, d], [f, o]) = (id.to_be_bytes(), flags.to_be_bytes());
    let mut ip = [0; 20];
    for (to, from) in ip.iter_mut().zip([0x45, how.class, high, low, i, d, f, o]) {
        *to = from;
    }
    (ip[8], ip[9]) = (how.hops, protocol4(seen.protocol));
    [ip[12], ip[13], ip[14], ip[15]] = to.src.octets();
    [ip[16], ip[17], ip[18], ip[19]] = to.dst.octets();
    [ip[10], ip[11]] = checksum::checksum(&ip).to_be_bytes();
    head.push(&ip)
}

/// Translates an IPv4 packet that is no ICMP error. `bytes`: the packet, or as much of it as lies in one piece. Its transport
/// header is changed in place.
///
/// # Errors
/// It cannot be translated; `bytes` may be changed.
pub fn to6(
    bytes: &mut [u8],
    seen: &ParsedPacket<Ipv4Addr>,
    to: &Ends<Ipv6Addr>,
    how: &HeaderFields,
) -> Result<Head, Fault> {
    let mut head = Head::new(seen.header.into());
    push6(&mut head, seen, to, (how, seen.payload.into()))?;
    let rest = bytes.get_mut(head.strip..).ok_or(Fault::Malformed)?;
    match seen.kind {
        Kind::Tcp | Kind::Udp if seen.is_first() => {
            let bare = seen.kind == Kind::Udp && word(rest, 6) == Some(0);
            let mut edit = Edit { bytes: rest, delta: Delta::NONE };
            ports(&mut edit, seen, to, how.sum).ok_or(Fault::Malformed)?;
            if bare && seen.is_part() {
                return Err(Fault::NoChecksum);
            } else if bare {
                complete_udp(rest, seen.payload, to)?;
            }
        }
        Kind::Tcp | Kind::Udp | Kind::Other => {}
        _ if seen.fragment.is_some() => return Err(Fault::IcmpFragment),
        Kind::Query => {
            let kind = if rest.first() == Some(&8) { 128 } else { 129 };
            let delta = pseudo6(Delta::NONE, to.src, to.dst, seen.payload.into(), true);
            query(rest, kind, to.sport, delta).ok_or(Fault::Malformed)?;
        }
        Kind::OtherIcmp | Kind::Error => return Err(Fault::IcmpType),
    }
    Ok(head)
}

/// Translates an IPv6 packet that is no ICMP error. `bytes`: the packet, or as much of it as lies in one piece. Its transport
/// header is changed in place.
///
/// # Errors
/// It cannot be translated; `bytes` may be changed.
pub fn to4(
    bytes: &mut [u8],
    seen: &ParsedPacket<Ipv6Addr>,
    to: &Ends<Ipv4Addr>,
    how: &HeaderFields,
) -> Result<Head, Fault> {
    let mut head = Head::new(seen.header.into());
    push4(&mut head, seen, to, (how, seen.payload.into()))?;
    let rest = bytes.get_mut(head.strip..).ok_or(Fault::Malformed)?;
    match seen.kind {
        Kind::Tcp | Kind::Udp if seen.is_first() => {
            let mut edit = Edit { bytes: rest, delta: Delta::NONE };
            ports(&mut edit, seen, to, how.sum).ok_or(Fault::Malformed)?;
        }
        Kind::Tcp | Kind::Udp | Kind::Other => {}
        _ if seen.is_part() => return Err(Fault::IcmpFragment),
        Kind::Query => {
            let kind = if rest.first() == Some(&128) { 8 } else { 0 };
            let delta = pseudo6(Delta::NONE, seen.ends.src, seen.ends.dst, seen.payload.into(), false);
            query(rest, kind, to.sport, delta).ok_or(Fault::Malformed)?;
        }
        Kind::OtherIcmp | Kind::Error => return Err(Fault::IcmpType),
    }
    Ok(head)
}

/// An echo request or its answer gets another type and identifier.
pub(crate) fn query(rest: &mut [u8], kind: u8, id: u16, delta: Delta) -> Option<()> {
    let sum = word(rest, 2)?;
    let mut edit = Edit { bytes: rest, delta };
    let code = *edit.bytes.get(1)?;
    edit.word(0, u16::from_be_bytes([kind, code]))?;
    edit.word(4, id)?;
    let sum = edit.delta.apply(sum);
    crate::read::put(rest, 2, sum)
}
