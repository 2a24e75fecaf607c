//! ICMP errors, and the packets they carry.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::{Delta, Kind, Sum};

use crate::head::{Head, HeaderFields, push4, push6, query};
use crate::icmp::{Message, message4, message6};
use crate::read::{Ends, Fault, ParsedPacket, put, word};
use crate::transport::{Address, Edit, ports, pseudo6, words};

/// Bytes of an ICMP error in front of the packet it carries.
const ICMP_HEADER: usize = 8;

fn message(bytes: &[u8]) -> Option<Message> {
    let header: &[u8; ICMP_HEADER] = bytes.first_chunk()?;
    let word = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    Some(Message { kind: header[0], code: header[1], word })
}

fn written(message: Message) -> [u8; ICMP_HEADER] {
    let [a, b, c, d] = message.word.to_be_bytes();
    [message.kind, message.code, 0, 0, a, b, c, d]
}

/// What lies where in an error.
struct Parts {
    /// The error's own headers.
    outer: usize,
    /// They, the ICMP header and the headers of the carried packet.
    strip: usize,
    /// Bytes behind those.
    rest: usize,
}

fn parts<A, B>(seen: &ParsedPacket<A>, carried: &ParsedPacket<B>) -> Result<Parts, Fault> {
    if seen.fragment.is_some() {
        return Err(Fault::IcmpFragment);
    }
    let outer = usize::from(seen.header);
    let before = ICMP_HEADER + usize::from(carried.header);
    let rest = usize::from(seen.payload).checked_sub(before).ok_or(Fault::Malformed)?;
    Ok(Parts { outer, strip: outer + before, rest })
}

/// Rewrites the carried packet's transport header; gives what that does to a checksum over it.
fn transport<A: Address, B: Address>(
    rest: &mut [u8],
    seen: &ParsedPacket<A>,
    to: &Ends<B>,
    (echo, icmp): (u8, Delta),
) -> Option<Delta> {
    let mut edit = Edit { bytes: rest, delta: Delta::NONE };
    match seen.kind {
        Kind::Tcp | Kind::Udp if seen.is_first() => ports(&mut edit, seen, to, Sum::Whole)?,
        Kind::Query if seen.is_first() => {
            let old: [u8; 8] = *rest.first_chunk()?;
            query(rest, echo, to.sport, icmp)?;
            let new: [u8; 8] = *rest.first_chunk()?;
            return Some(words(words(Delta::NONE, &old, false), &new, true));
        }
        _ => {}
    }
    Some(edit.delta)
}

/// Translates an IPv4 packet with an ICMP error. `carried` was read by [`carried4`](crate::carried4) behind its ICMP header;
/// `to` are the error's own addresses, `carried_to` those and the ports of the packet it carries.
///
/// # Errors
/// It cannot be translated; `bytes` may be changed.
pub fn error_to6(
    bytes: &mut [u8],
    (seen, carried): (&ParsedPacket<Ipv4Addr>, &ParsedPacket<Ipv4Addr>),
    (to, carried_to): (&Ends<Ipv6Addr>, &Ends<Ipv6Addr>),
    how: &HeaderFields,
) -> Result<Head, Fault> {
    let parts = parts(seen, carried)?;
    let old = bytes.get(parts.outer..parts.strip).ok_or(Fault::Malformed)?;
    let sum = word(old, 2).ok_or(Fault::Malformed)?;
    let length = carried.payload.saturating_add(carried.header);
    let new = message(old).and_then(|old| message6(old, length)).ok_or(Fault::IcmpType)?;
    let mut inner = Head::new(0);
    inner.push(&written(new))?;
    push6(&mut inner, carried, carried_to, (&HeaderFields::of(carried, 0), carried.payload.into()))?;
    // The checksum field of the new header is 0: the old one's leaves.
    let delta = words(words(Delta::NONE, old, false), inner.bytes(), true).word(0, sum);
    let length = inner.bytes().len() + parts.rest;
    let echo = if bytes.get(parts.strip) == Some(&8) { 128 } else { 129 };
    let icmp = pseudo6(Delta::NONE, carried_to.src, carried_to.dst, carried.payload.into(), true);
    let rest = bytes.get_mut(parts.strip..).ok_or(Fault::Malformed)?;
    let changed = transport(rest, carried, carried_to, (echo, icmp)).ok_or(Fault::Malformed)?;
    let delta = pseudo6(delta, to.src, to.dst, u32::try_from(length).unwrap_or(u32::MAX), true);
    let sum = joined(delta, changed).apply(sum);
    let mut head = Head::new(parts.strip);
    push6(&mut head, seen, to, (how, length))?;
    finish(head, &inner, sum)
}

/// Translates an IPv6 packet with an ICMPv6 error. `carried` was read by [`carried6`](crate::carried6) behind its ICMPv6
/// header; `to` are the error's own addresses, `carried_to` those and the ports of the packet it carries.
///
/// # Errors
/// It cannot be translated; `bytes` may be changed.
pub fn error_to4(
    bytes: &mut [u8],
    (seen, carried): (&ParsedPacket<Ipv6Addr>, &ParsedPacket<Ipv6Addr>),
    (to, carried_to): (&Ends<Ipv4Addr>, &Ends<Ipv4Addr>),
    how: &HeaderFields,
) -> Result<Head, Fault> {
    let parts = parts(seen, carried)?;
    let old = bytes.get(parts.outer..parts.strip).ok_or(Fault::Malformed)?;
    let sum = word(old, 2).ok_or(Fault::Malformed)?;
    let new = message(old).and_then(message4).ok_or(Fault::IcmpType)?;
    let mut inner = Head::new(0);
    inner.push(&written(new))?;
    push4(&mut inner, carried, carried_to, (&HeaderFields::of(carried, 0), carried.payload.into()))?;
    let delta = words(words(Delta::NONE, old, false), inner.bytes(), true).word(0, sum);
    let length = inner.bytes().len() + parts.rest;
    let echo = if bytes.get(parts.strip) == Some(&128) { 8 } else { 0 };
    let icmp = pseudo6(Delta::NONE, carried.ends.src, carried.ends.dst, carried.payload.into(), false);
    let rest = bytes.get_mut(parts.strip..).ok_or(Fault::Malformed)?;
    let changed = transport(rest, carried, carried_to, (echo, icmp)).ok_or(Fault::Malformed)?;
    let delta = pseudo6(delta, seen.ends.src, seen.ends.dst, seen.payload.into(), false);
    let sum = joined(delta, changed).apply(sum);
    let mut head = Head::new(parts.strip);
    push4(&mut head, seen, to, (how, length))?;
    finish(head, &inner, sum)
}

/// Both changes.
fn joined(one: Delta, other: Delta) -> Delta {
    one.word(0, other.to_bits())
}

fn finish(mut head: Head, inner: &Head, sum: u16) -> Result<Head, Fault> {
    let mut room = *inner;
    put(room.bytes_mut(), 2, sum).ok_or(Fault::Malformed)?;
    head.push(room.bytes())?;
    Ok(head)
}
