//! Where a frame's headers lie: the lab's own reading of Ethernet, IPv4, IPv6 and what they carry.
//!
//! Deliberately apart from the router's parser: a mistake in both would hide itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::sum;

/// Bytes of an Ethernet header without tags.
pub(crate) const ETHERNET: usize = 14;
/// IPv4's EtherType.
pub(crate) const IP4: u16 = 0x0800;
/// IPv6's EtherType.
pub(crate) const IP6: u16 = 0x86dd;
/// Protocol numbers of IANA's list.
pub(crate) const ICMP4: u8 = 1;
/// TCP.
pub(crate) const TCP: u8 = 6;
/// UDP.
pub(crate) const UDP: u8 = 17;
/// ICMPv6.
pub(crate) const ICMP6: u8 = 58;
/// SCTP.
const SCTP: u8 = 132;

/// IPv6's extension headers that may stand before the transport header (RFC 8200 section 4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// Reads two bytes, big-endian.
pub(crate) fn word(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

/// Writes two bytes, big-endian; nothing where the frame ends before.
pub(crate) fn put_word(frame: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(at..at + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// An IP packet's places in its frame. All offsets count from the destination MAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// 4 or 6.
    pub is_ip4: bool,
    /// The IP header's first byte.
    pub ip: usize,
    /// The transport header's first byte: behind IPv4's options or IPv6's extension headers.
    pub l4: usize,
    /// The byte behind the IP packet: padding of the frame begins here.
    pub end: usize,
    /// The transport's protocol number.
    pub protocol: u8,
    /// Not all of the transport's bytes are in this packet.
    pub is_fragment: bool,
}

impl Layout {
    /// Reads `frame`; `None` if it holds no whole IP packet.
    pub(crate) fn of(frame: &[u8]) -> Option<Layout> {
        let (ethertype, ip) = network(frame)?;
        match ethertype {
            IP4 => Self::of_ip4(frame, ip),
            IP6 => Self::of_ip6(frame, ip),
            _ => None,
        }
    }

    fn of_ip4(frame: &[u8], ip: usize) -> Option<Layout> {
        let first = *frame.get(ip)?;
        let header = usize::from(first & 15) * 4;
        let end = ip + usize::from(word(frame, ip + 2)?);
        let l4 = ip + header;
        if first >> 4 != 4 || header < 20 || end < l4 || end > frame.len() {
            return None;
        }
        // More fragments, or an offset (RFC 791 3.1).
        let is_fragment = word(frame, ip + 6)? & 0x3fff != 0;
        Some(Layout { is_ip4: true, ip, l4, end, protocol: *frame.get(ip + 9)?, is_fragment })
    }

    fn of_ip6(frame: &[u8], ip: usize) -> Option<Layout> {
        let mut l4 = ip + 40;
        let end = l4 + usize::from(word(frame, ip + 4)?);
        if *frame.get(ip)? >> 4 != 6 || end > frame.len() {
            return None;
        }
        let mut protocol = *frame.get(ip + 6)?;
        let mut is_fragment = false;
        while matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            let length = if protocol == FRAGMENT {
                is_fragment |= word(frame, l4 + 2)? & 0xfff9 != 0;
                8
            } else {
                8 + 8 * usize::from(*frame.get(l4 + 1)?)
            };
            protocol = *frame.get(l4)?;
            l4 += length;
            if l4 > end {
                return None;
            }
        }
        Some(Layout { is_ip4: false, ip, l4, end, protocol, is_fragment })
    }

    /// Where the IPv4 header's checksum is.
    pub(crate) fn ip4_checksum(&self) -> Option<usize> {
        self.is_ip4.then_some(self.ip + 10)
    }

    /// The bytes of both addresses.
    pub(crate) fn addresses(&self) -> Range<usize> {
        if self.is_ip4 { self.ip + 12..self.ip + 20 } else { self.ip + 8..self.ip + 40 }
    }

    /// Whether the transport has ports at its beginning.
    pub(crate) fn has_ports(&self) -> bool {
        matches!(self.protocol, UDP | TCP | SCTP) && !self.is_fragment && self.l4 + 4 <= self.end
    }

    /// Where the transport's checksum is, if it has one of the Internet's kind and its bytes are all here.
    pub(crate) fn l4_checksum(&self) -> Option<usize> {
        let (offset, header) = match (self.protocol, self.is_ip4) {
            (UDP, _) => (6, 8),
            (TCP, _) => (16, 20),
            (ICMP4, true) | (ICMP6, false) => (2, 4),
            _ => return None,
        };
        (!self.is_fragment && self.l4 + header <= self.end).then_some(self.l4 + offset)
    }

    /// Whether addresses and protocol are summed into the transport's checksum: not so for ICMP on IPv4 (RFC 792).
    pub(crate) fn has_pseudo_header(&self) -> bool {
        self.protocol != ICMP4
    }

    /// Where what the transport carries begins: the payload.
    pub(crate) fn payload(&self, frame: &[u8]) -> usize {
        let header = match self.protocol {
            UDP | ICMP4 | ICMP6 => 8,
            TCP => usize::from(frame.get(self.l4 + 12).copied().unwrap_or(0x50) >> 4) * 4,
            SCTP => 12,
            _ => 0,
        };
        (self.l4 + header).min(self.end)
    }

    /// Sum over the IPv4 header without its checksum.
    pub(crate) fn ip4_sum(&self, frame: &[u8]) -> u64 {
        let own = word(frame, self.ip + 10).unwrap_or(0);
        sum::of(frame.get(self.ip..self.l4).unwrap_or_default()) + sum::difference(u64::from(own), 0, 0)
    }

    /// Sum over the transport's bytes and its pseudo-header, without its checksum.
    pub(crate) fn l4_sum(&self, frame: &[u8]) -> u64 {
        let mut total = sum::of(frame.get(self.l4..self.end).unwrap_or_default());
        if self.has_pseudo_header() {
            // RFC 768, RFC 8200 section 8.1: addresses, protocol, length.
            total += sum::of(frame.get(self.addresses()).unwrap_or_default());
            // The header's byte, not the one that was read: it may be among those that change.
            let own = frame.get(self.ip + 9).copied().filter(|_| self.is_ip4);
            total += u64::from(own.unwrap_or(self.protocol)) + (self.end - self.l4) as u64;
        }
        if let Some(own) = self.l4_checksum().and_then(|at| word(frame, at)) {
            total += sum::difference(u64::from(own), 0, 0);
        }
        total
    }

    /// The checksum that a transport sum comes to. UDP's 0 is sent as 0xFFFF, for 0 says that there is none (RFC 768).
    pub(crate) fn l4_result(&self, total: u64) -> u16 {
        match !sum::fold(total) {
            0 if self.protocol == UDP => 0xffff,
            checksum => checksum,
        }
    }

    /// Both addresses, source first.
    pub(crate) fn ends(&self, frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
        let bytes = frame.get(self.addresses())?;
        let (source, destination) = bytes.split_at_checked(bytes.len() / 2)?;
        Some((address(source)?, address(destination)?))
    }
}

/// EtherType and the first byte behind it, VLAN tags (802.1Q, 802.1ad, at most four) passed over.
pub(crate) fn network(frame: &[u8]) -> Option<(u16, usize)> {
    let mut at = 12;
    for _ in 0..5 {
        match word(frame, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            ethertype => return Some((ethertype, at + 2)),
        }
    }
    None
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(four)));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| IpAddr::V6(Ipv6Addr::from(sixteen)))
}
