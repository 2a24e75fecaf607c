//! IPv6: an address is replaced by another, and checksums follow. Ports stay.
//!
//! What a packet has between its IPv6 header and its transport header is stepped over (RFC 8200, 4). A fragment that is not the
//! first has no checksum to follow: its datagram's is in the first one.

use shoal_wire::ip6_ext::Ip6ExtHeaders;
use shoal_wire::{FromBytes, Ip6Header, IpProtocol};

use crate::delta::Delta;
use crate::icmp::Fault;
use crate::rewrite::Sum;
use crate::tuple::word;

/// Where the source address is in an IPv6 header.
const SRC_AT: usize = 8;
/// Bytes of an ICMPv6 message in front of the packet that an error carries.
const ICMP6_HEADER: usize = 8;

/// An address of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

impl End {
    const fn at(self) -> usize {
        match self {
            End::Source => SRC_AT,
            End::Destination => Ip6Header::DST_AT,
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> End {
        match self {
            End::Source => End::Destination,
            End::Destination => End::Source,
        }
    }
}

/// The packet that an ICMPv6 error carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6Quoted {
    /// Where it begins.
    at: usize,
    /// Its source address.
    pub src: u128,
    /// Its destination address.
    pub dst: u128,
}

impl Ip6Quoted {
    /// One of its addresses.
    pub const fn address(&self, end: End) -> u128 {
        match end {
            End::Source => self.src,
            End::Destination => self.dst,
        }
    }
}

/// What was read of an IPv6 packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6Seen {
    /// Its source address.
    pub src: u128,
    /// Its destination address.
    pub dst: u128,
    /// The protocol above IP.
    pub protocol: IpProtocol,
    /// Where its transport header begins.
    pub offset: usize,
    /// Whether the transport header is here.
    pub first: bool,
    /// Whether it is no fragment at all.
    pub is_whole: bool,
    /// A routing header names the last destination, so that the transport checksum does not cover the one in the header.
    routed: bool,
    /// The packet that it carries, if it is an ICMPv6 error.
    pub quoted: Option<Ip6Quoted>,
}

/// Where the checksum of a protocol's header is, if it covers addresses.
const fn checksum_at(protocol: IpProtocol) -> Option<usize> {
    match protocol.0 {
        6 => Some(16),
        // UDP, UDP-Lite, DCCP.
        17 | 136 | 33 => Some(6),
        58 => Some(2),
        _ => None,
    }
}

/// A header chain of a packet, without what an ICMPv6 error carries.
fn chain(bytes: &[u8]) -> Option<Ip6Seen> {
    let (ip, _) = Ip6Header::ref_from_prefix(bytes).ok()?;
    let mut headers = Ip6ExtHeaders::of_packet(bytes)?;
    let (mut first, mut is_whole, mut routed) = (true, true, false);
    for header in headers.by_ref() {
        let header = header.ok()?;
        if let Some(fragment) = header.fragment() {
            first &= fragment.offset() == 0;
            is_whole &= fragment.is_atomic();
        }
        // RFC 8200, 8.1: with a routing header the pseudo header has the last destination until it is reached.
        if header.protocol == IpProtocol::IPV6_ROUTE {
            routed |= header.bytes.get(3).is_some_and(|left| *left > 0);
        }
    }
    Some(Ip6Seen {
        src: ip.src_u128(),
        dst: ip.dst_u128(),
        protocol: headers.protocol(),
        offset: headers.offset(),
        first,
        is_whole,
        routed,
        quoted: None,
    })
}

impl Ip6Seen {
    /// Reads an IPv6 packet.
    ///
    /// # Errors
    /// A header is cut short, or what an ICMPv6 error carries is no IPv6 header.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Ip6Seen, Fault> {
        let mut seen = chain(bytes).ok_or(Fault::Short)?;
        if !seen.first {
            return Ok(seen);
        }
        if let Some(at) = checksum_at(seen.protocol) {
            word(bytes, seen.offset + at).ok_or(Fault::Short)?;
        }
        if seen.protocol == IpProtocol::ICMP6 {
            seen.quoted = seen.read_quoted(bytes)?;
        }
        Ok(seen)
    }

    /// Reads a packet whose checksums do not change, because its new addresses have the sum of the old ones (RFC 6296): what is
    /// there of its transport header does not matter.
    ///
    /// # Errors
    /// As [`Ip6Seen::read`].
    #[inline]
    pub fn read_neutral(bytes: &[u8]) -> Result<Ip6Seen, Fault> {
        let mut seen = chain(bytes).ok_or(Fault::Short)?;
        if seen.first && seen.protocol == IpProtocol::ICMP6 {
            seen.quoted = seen.read_quoted(bytes)?;
        }
        Ok(seen)
    }

    /// RFC 4443, 2.1: messages with types below 128 are errors; each carries as much of its packet as fits.
    fn read_quoted(&self, bytes: &[u8]) -> Result<Option<Ip6Quoted>, Fault> {
        let kind = *bytes.get(self.offset).ok_or(Fault::Short)?;
        if kind >= 128 {
            return Ok(None);
        }
        let at = self.offset + ICMP6_HEADER;
        let carried = bytes.get(at..).ok_or(Fault::Short)?;
        let (ip, _) = Ip6Header::ref_from_prefix(carried).map_err(|_| Fault::Short)?;
        if !ip.version_ok() {
            return Err(Fault::Unsupported);
        }
        Ok(Some(Ip6Quoted { at, src: ip.src_u128(), dst: ip.dst_u128() }))
    }

    /// One of its addresses.
    pub const fn address(&self, end: End) -> u128 {
        match end {
            End::Source => self.src,
            End::Destination => self.dst,
        }
    }

    /// Whether the transport checksum covers an address.
    const fn covers(&self, end: End) -> bool {
        match end {
            End::Source => true,
            End::Destination => !self.routed,
        }
    }

    /// Replaces an address of the packet that was read. `sum` says what its transport checksum is.
    ///
    /// # Errors
    /// The bytes are not those that were read.
    #[inline]
    pub fn replace(&self, bytes: &mut [u8], end: End, new: u128, sum: Sum) -> Result<(), Fault> {
        put(bytes, end, new)?;
        if !self.first || !self.covers(end) {
            return Ok(());
        }
        let Some(at) = checksum_at(self.protocol) else { return Ok(()) };
        let delta = Delta::NONE.wide(self.address(end), new);
        follow(bytes, self.offset + at, (self.protocol, delta), sum).ok_or(Fault::Short)
    }

    /// Replaces an address of the packet that an ICMPv6 error carries. The checksum inside follows if it is there, and so does the
    /// error's own.
    ///
    /// # Errors
    /// It carries none, or the bytes are not those that were read.
    pub fn replace_quoted(&self, bytes: &mut [u8], end: End, new: u128, sum: Sum) -> Result<(), Fault> {
        let quoted = self.quoted.ok_or(Fault::Unsupported)?;
        let inner = bytes.get_mut(quoted.at..).ok_or(Fault::Short)?;
        let mut delta = Delta::NONE.wide(quoted.address(end), new);
        let addresses = delta;
        put(inner, end, new)?;
        // What comes after the inner header may be cut off.
        let seen = chain(inner).filter(|seen| seen.first && seen.covers(end));
        let field = seen.and_then(|seen| Some((seen.protocol, seen.offset + checksum_at(seen.protocol)?)));
        if let Some((protocol, at)) = field
            && let Some(old) = word(inner, at)
        {
            follow(inner, at, (protocol, addresses), Sum::Whole).ok_or(Fault::Short)?;
            let new = word(inner, at).ok_or(Fault::Short)?;
            // A header chain of odd length cannot be: all of its parts are of four bytes or more.
            delta = delta.word(old, new);
        }
        if sum == Sum::Whole {
            follow(bytes, self.offset + 2, (IpProtocol::ICMP6, delta), sum).ok_or(Fault::Short)?;
        }
        Ok(())
    }
}

impl Ip6Seen {
    /// Replaces a port of a TCP or UDP packet that was read, after its addresses.
    ///
    /// # Errors
    /// The bytes are not those that were read.
    pub fn replace_port(&self, bytes: &mut [u8], end: End, new: u16, sum: Sum) -> Result<(), Fault> {
        let Some(checksum) = checksum_at(self.protocol).filter(|_| self.first) else { return Ok(()) };
        let old = put_port(bytes, self.offset, end, new).ok_or(Fault::Short)?;
        // The sum of a pseudo header has no ports in it.
        if sum == Sum::Pseudo {
            return Ok(());
        }
        let delta = Delta::NONE.word(old, new);
        follow(bytes, self.offset + checksum, (self.protocol, delta), sum).ok_or(Fault::Short)
    }

    /// Replaces a port of the packet that an ICMPv6 error carries, if it is of TCP or UDP and its ports are there. The error's own
    /// checksum follows; that of the packet inside, which is not looked at, does not.
    ///
    /// # Errors
    /// It carries none, or the bytes are not those that were read.
    pub fn replace_quoted_port(&self, bytes: &mut [u8], end: End, new: u16, sum: Sum) -> Result<(), Fault> {
        let quoted = self.quoted.ok_or(Fault::Unsupported)?;
        let inner = bytes.get_mut(quoted.at..).ok_or(Fault::Short)?;
        let has_ports =
            |seen: &Ip6Seen| seen.first && matches!(seen.protocol, IpProtocol::TCP | IpProtocol::UDP);
        let Some(seen) = chain(inner).filter(has_ports) else { return Ok(()) };
        let Some(old) = put_port(inner, seen.offset, end, new) else { return Ok(()) };
        if sum == Sum::Pseudo {
            return Ok(());
        }
        let delta = Delta::NONE.word(old, new);
        follow(bytes, self.offset + 2, (IpProtocol::ICMP6, delta), sum).ok_or(Fault::Short)
    }
}

impl Ip6Seen {
    /// The identifier of a packet that begins with an ICMPv6 echo request or its answer; 0 of others.
    pub(crate) fn echo_of(bytes: &[u8]) -> u16 {
        let at = chain(bytes).filter(|seen| seen.first && seen.protocol == IpProtocol::ICMP6);
        at.and_then(|seen| echo_at(bytes, seen.offset)).and_then(|at| word(bytes, at)).unwrap_or(0)
    }

    /// Replaces the identifier of an ICMPv6 echo request or its answer.
    ///
    /// # Errors
    /// The bytes are not those that were read.
    pub fn replace_echo(&self, bytes: &mut [u8], new: u16, sum: Sum) -> Result<(), Fault> {
        let at = echo_at(bytes, self.offset).filter(|_| self.first && self.protocol == IpProtocol::ICMP6);
        let Some(at) = at else { return Ok(()) };
        let old = put_word(bytes, at, new).ok_or(Fault::Short)?;
        if sum == Sum::Pseudo {
            return Ok(());
        }
        let delta = Delta::NONE.word(old, new);
        follow(bytes, self.offset + 2, (self.protocol, delta), sum).ok_or(Fault::Short)
    }

    /// Replaces the identifier of the ICMPv6 echo request, or its answer, that an ICMPv6 error carries, if it carries one. The
    /// error's own checksum follows; that of the packet inside does not.
    ///
    /// # Errors
    /// It carries no packet, or the bytes are not those that were read.
    pub fn replace_quoted_echo(&self, bytes: &mut [u8], new: u16, sum: Sum) -> Result<(), Fault> {
        let quoted = self.quoted.ok_or(Fault::Unsupported)?;
        let inner = bytes.get_mut(quoted.at..).ok_or(Fault::Short)?;
        let seen = chain(inner).filter(|seen| seen.first && seen.protocol == IpProtocol::ICMP6);
        let Some(at) = seen.and_then(|seen| echo_at(inner, seen.offset)) else { return Ok(()) };
        let Some(old) = put_word(inner, at, new) else { return Ok(()) };
        if sum == Sum::Pseudo {
            return Ok(());
        }
        let delta = Delta::NONE.word(old, new);
        follow(bytes, self.offset + 2, (IpProtocol::ICMP6, delta), sum).ok_or(Fault::Short)
    }
}

/// Where the identifier of an ICMPv6 echo message is whose header begins at `transport`.
fn echo_at(bytes: &[u8], transport: usize) -> Option<usize> {
    matches!(bytes.get(transport)?, 128 | 129).then_some(transport + 4)
}

/// Writes a word; the one that was there.
fn put_word(bytes: &mut [u8], at: usize, new: u16) -> Option<u16> {
    let field: &mut [u8; 2] = bytes.get_mut(at..)?.first_chunk_mut()?;
    Some(u16::from_be_bytes(std::mem::replace(field, new.to_be_bytes())))
}

/// Writes a port of a transport header; the one that was there.
fn put_port(bytes: &mut [u8], transport: usize, end: End, new: u16) -> Option<u16> {
    put_word(bytes, if end == End::Source { transport } else { transport + 2 }, new)
}

/// Writes an address.
///
/// # Errors
/// The header is cut short.
#[inline]
pub fn put(bytes: &mut [u8], end: End, new: u128) -> Result<(), Fault> {
    let field = bytes.get_mut(end.at()..).and_then(|rest| rest.first_chunk_mut::<16>());
    *field.ok_or(Fault::Short)? = new.to_be_bytes();
    Ok(())
}

/// Writes an address of the packet that an ICMPv6 error carries, and nothing else.
///
/// # Errors
/// It carries none, or is cut short.
pub fn put_quoted(bytes: &mut [u8], seen: &Ip6Seen, end: End, new: u128) -> Result<(), Fault> {
    let quoted = seen.quoted.ok_or(Fault::Unsupported)?;
    put(bytes.get_mut(quoted.at..).ok_or(Fault::Short)?, end, new)
}

/// A checksum follows a change.
#[inline]
fn follow(bytes: &mut [u8], at: usize, (protocol, delta): (IpProtocol, Delta), sum: Sum) -> Option<()> {
    let field: &mut [u8; 2] = bytes.get_mut(at..)?.first_chunk_mut()?;
    let old = u16::from_be_bytes(*field);
    // RFC 6935: a tunnel's UDP may have no checksum.
    let is_udp = matches!(protocol.0, 17 | 136);
    if is_udp && old == 0 {
        return Some(());
    }
    let new = match sum {
        Sum::Whole => delta.apply(old),
        Sum::Pseudo => delta.add(old),
    };
    *field = (if is_udp && new == 0 { 0xffff } else { new }).to_be_bytes();
    Some(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use shoal_wire::packet::Packet;
    use shoal_wire::{TcpFlags, checksum};

    use super::*;

    const A: &str = "fd00::5";
    const B: &str = "2001:db8:f::5";
    const FAR: &str = "2001:db8:1::9";

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn number(text: &str) -> u128 {
        ip(text).to_bits()
    }

    fn base(src: &str, dst: &str) -> Packet {
        Packet::raw().ip6(ip(src), ip(dst))
    }

    fn replaced(packet: &[u8], end: End, new: &str) -> Vec<u8> {
        let mut bytes = packet.to_vec();
        let seen = Ip6Seen::read(&bytes).unwrap();
        seen.replace(&mut bytes, end, number(new), Sum::Whole).unwrap();
        bytes
    }

    type Make = fn(Packet) -> Packet;

    const KINDS: [Make; 7] = [
        |p| p.tcp(1, 2, TcpFlags::SYN).payload(b"odd"),
        |p| p.udp(1, 2).payload(b"even"),
        |p| p.udp(1, 2).l4_checksum(0),
        |p| p.icmp6_echo_request(7, 1).payload(b"ping!"),
        |p| p.ip6_ext(IpProtocol::IP6_HOP_BY_HOP_OPTIONS, &[1, 4, 0, 0, 0, 0]).tcp(1, 2, TcpFlags::ACK),
        |p| p.ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0]).udp(5, 6).payload(b"x"),
        |p| p.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 1, 0, 0, 0, 7]).udp(5, 6).payload(b"first fr"),
    ];

    #[test]
    fn a_packet_with_another_address_is_the_one_made_with_it_and_back_again() {
        for make in KINDS {
            let (before, after) = (make(base(A, FAR)).build(), make(base(B, FAR)).build());
            assert_eq!(replaced(&before, End::Source, B), after);
            assert_eq!(replaced(&after, End::Source, A), before);
            let (before, after) = (make(base(FAR, B)).build(), make(base(FAR, A)).build());
            assert_eq!(replaced(&before, End::Destination, A), after);
            assert_eq!(replaced(&after, End::Destination, B), before);
        }
    }

    #[test]
    fn of_a_later_fragment_the_address_alone_changes() {
        let later: Make =
            |p| p.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 64, 0, 0, 0, 7]).protocol(IpProtocol::UDP);
        let packet = later(base(A, FAR)).payload(&[0xaa; 12]).build();
        let out = replaced(&packet, End::Source, B);
        assert_eq!(out[40..], packet[40..]);
        assert_eq!(Ip6Seen::read(&out).unwrap().src, number(B));
        // One byte of a later piece is enough.
        assert!(!Ip6Seen::read(&packet[..49]).unwrap().first);
    }

    #[test]
    fn behind_a_routing_header_the_destination_is_not_covered() {
        let routed: Make =
            |p| p.ip6_ext(IpProtocol::IPV6_ROUTE, &[4, 1, 0, 0, 0, 0]).tcp(1, 2, TcpFlags::SYN);
        let packet = routed(base(A, FAR)).build();
        let out = replaced(&packet, End::Destination, B);
        assert_eq!(out[48..], packet[48..], "the checksum stays");
        assert_ne!(replaced(&packet, End::Source, B)[48..], packet[48..]);
    }

    fn error(inner: &[u8], src: &str, dst: &str) -> Vec<u8> {
        let mut message = vec![1, 4, 0, 0, 0, 0, 0, 0];
        message.extend(inner);
        base(src, dst).icmp6(&message).build()
    }

    fn is_right(packet: &[u8]) -> bool {
        let seen = chain(packet).unwrap();
        let l4 = &packet[seen.offset..];
        let (src, dst) = (Ipv6Addr::from_bits(seen.src), Ipv6Addr::from_bits(seen.dst));
        let mut sum = checksum::Sum::pseudo_ip6(src, dst, seen.protocol, l4.len() as u32);
        sum.add(l4);
        sum.folded() == 0xffff
    }

    #[test]
    fn an_error_and_the_packet_in_it_follow_together_and_both_sums_are_right() {
        for make in KINDS {
            let (inside, outside) = (make(base(A, FAR)).build(), make(base(B, FAR)).build());
            for cut in [outside.len(), 41, 48, 58, 60] {
                let cut = cut.min(outside.len());
                let mut packet = error(&outside[..cut], FAR, B);
                assert!(is_right(&packet));
                let seen = Ip6Seen::read(&packet).unwrap();
                seen.replace(&mut packet, End::Destination, number(A), Sum::Whole).unwrap();
                seen.replace_quoted(&mut packet, End::Source, number(A), Sum::Whole).unwrap();
                assert!(is_right(&packet), "{cut}");
                assert_eq!(Ip6Seen::read(&packet).unwrap().dst, number(A));
                if cut == outside.len() {
                    assert_eq!(packet[48..], inside, "its sender sees the packet it sent");
                }
            }
        }
    }

    #[test]
    fn an_echo_has_another_identifier_and_so_has_the_one_in_an_error() {
        let echo = |id| base(A, FAR).icmp6_echo_request(id, 1).payload(b"odd").build();
        let mut packet = echo(7);
        let seen = Ip6Seen::read(&packet).unwrap();
        seen.replace_echo(&mut packet, 0xfffe, Sum::Whole).unwrap();
        assert_eq!(packet, echo(0xfffe));
        assert_eq!(
            (Ip6Seen::echo_of(&packet), Ip6Seen::echo_of(&base(A, FAR).udp(1, 2).build())),
            (0xfffe, 0)
        );
        let mut packet = error(&echo(7), FAR, A);
        let seen = Ip6Seen::read(&packet).unwrap();
        seen.replace_quoted_echo(&mut packet, 9, Sum::Whole).unwrap();
        assert!(is_right(&packet));
        assert_eq!(Ip6Seen::echo_of(&packet[48..]), 9);
        // Of others nothing changes.
        let mut other = base(A, FAR).udp(1, 2).build();
        let before = other.clone();
        Ip6Seen::read(&other).unwrap().replace_echo(&mut other, 9, Sum::Whole).unwrap();
        assert_eq!(other, before);
    }

    #[test]
    fn what_is_cut_short_is_refused_and_nothing_panics() {
        for make in KINDS {
            let whole = make(base(A, FAR)).build();
            let full = Ip6Seen::read(&whole).unwrap();
            for n in 0..whole.len() {
                let mut cut = whole[..n].to_vec();
                let needed = full.offset + checksum_at(full.protocol).unwrap() + 2;
                match Ip6Seen::read(&cut) {
                    Ok(seen) => {
                        assert!(n >= needed, "{n}");
                        seen.replace(&mut cut, End::Source, 1, Sum::Whole).unwrap();
                    }
                    Err(fault) => assert!(fault == Fault::Short && n < needed, "{n}"),
                }
                // What was read of another packet does no harm.
                let _ = full.replace(&mut cut, End::Destination, 1, Sum::Whole);
            }
            let error = error(&whole, FAR, A);
            for n in 0..error.len() {
                let mut cut = error[..n].to_vec();
                let seen = Ip6Seen::read(&cut);
                assert_eq!(seen.is_ok(), n >= 88, "{n}");
                if let Ok(seen) = seen {
                    seen.replace_quoted(&mut cut, End::Source, 7, Sum::Whole).unwrap();
                }
            }
        }
        let mut other = error(&[0x45; 60], FAR, A);
        assert_eq!(Ip6Seen::read(&other), Err(Fault::Unsupported));
        other[40] = 129;
        assert!(Ip6Seen::read(&other).unwrap().quoted.is_none());
    }
}
