//! What a rule does to the bytes of a packet; all checksums follow.

use shoal_nat::{Delta, Kind, ParsedPacket, Rewrite as NewTuple, Sum};

use crate::rule::{Fields, Rewrite};

/// Where the IP header has its checksum.
const CHECKSUM_AT: usize = 10;
/// Where its addresses begin, which the checksums of TCP and UDP cover, too.
const ADDRESSES_AT: usize = 12;
/// Bytes of an IP header without options.
const HEADER: usize = 20;

/// A byte that a rule names is beyond the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeyondPacket;

/// Rewrites an IPv4 packet that was read as `seen`.
///
/// # Errors
/// The packet is too short for it; it may have been changed in part, and is to be dropped.
pub fn apply(rule: &Rewrite, bytes: &mut [u8], seen: &ParsedPacket, sum: Sum) -> Result<(), BeyondPacket> {
    let to = rule.applied(seen.tuple, matches!(seen.kind, Kind::Tcp | Kind::Udp));
    if to != seen.tuple {
        let new = NewTuple::new(seen.tuple, to, seen.protocol);
        new.write(bytes, seen.header.into(), seen.kind, seen.first, sum).ok_or(BeyondPacket)?;
    }
    if rule.mask.has(Fields::COPY_BYTE) {
        let byte = *bytes.get(usize::from(rule.from_offset)).ok_or(BeyondPacket)?;
        set(bytes, rule.to_offset.into(), byte, seen, sum)?;
    }
    if rule.mask.has(Fields::CLEAR_BYTE) {
        set(bytes, rule.clear_offset.into(), 0, seen, sum)?;
    }
    Ok(())
}

/// The word of two bytes that has a byte; the last one of an odd packet has a 0 behind it.
fn word(bytes: &[u8], at: usize) -> u16 {
    let even = at & !1;
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    u16::from_be_bytes([byte(even), byte(even + 1)])
}

fn set(bytes: &mut [u8], at: usize, value: u8, seen: &ParsedPacket, sum: Sum) -> Result<(), BeyondPacket> {
    let header = usize::from(seen.header);
    let old = word(bytes, at);
    *bytes.get_mut(at).ok_or(BeyondPacket)? = value;
    let change = Delta::NONE.word(old, word(bytes, at));
    let in_header = at < header;
    if in_header {
        // The byte may be of the checksum itself, which is then what the rule says.
        if at & !1 != CHECKSUM_AT {
            follow(bytes, CHECKSUM_AT, change, false);
        }
        if !(ADDRESSES_AT..HEADER).contains(&at) {
            return Ok(());
        }
    }
    let place = match seen.kind {
        Kind::Tcp => 16,
        Kind::Udp => 6,
        // ICMP's checksum covers no addresses.
        Kind::Query | Kind::Error | Kind::OtherIcmp if !in_header => 2,
        _ => return Ok(()),
    };
    let place = header + place;
    if !seen.first || at & !1 == place {
        return Ok(());
    }
    match sum {
        Sum::Whole => follow(bytes, place, change, seen.kind == Kind::Udp),
        // The device sums up what is behind the header; the field holds the sum of the addresses.
        Sum::Pseudo if in_header => {
            let new = change.add(word(bytes, place));
            put(bytes, place, new);
        }
        Sum::Pseudo => {}
    }
    Ok(())
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes.iter_mut().skip(at).zip(value.to_be_bytes()).for_each(|(to, byte)| *to = byte);
}

/// A checksum follows a change of what it covers. `optional`: 0 says that there is none.
fn follow(bytes: &mut [u8], at: usize, change: Delta, optional: bool) {
    let old = word(bytes, at);
    if optional && old == 0 {
        return;
    }
    let new = change.apply(old);
    put(bytes, at, if optional && new == 0 { 0xffff } else { new });
}
