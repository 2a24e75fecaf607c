//! Whole packets of TCP and UDP without options or extension headers, which nearly all are: read at once, and given the other
//! protocol's header where they lie. Others go through [`read4`](crate::read4) and [`to6`](crate::to6) or their reverse, which do
//! the same to these.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::Sum;
use shoal_nat::tuple::{TCP, UDP};

use crate::head::SMALL;
use crate::read::Ends;

/// Bytes of an IPv4 header without options.
const IP4: usize = 20;
/// Bytes of an IPv6 header.
const IP6: usize = 40;
/// How much longer the header of IPv6 is.
const DIFFERENCE: usize = IP6 - IP4;

/// Such a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WithPorts<A> {
    /// From where to where.
    pub ends: Ends<A>,
    /// TCP or UDP.
    pub protocol: u8,
    /// TOS or traffic class.
    pub class: u8,
    /// Time to live or hop limit.
    pub hops: u8,
    /// Bytes behind the IP header, as that says.
    pub payload: u16,
    /// TCP's flags, 0 of UDP.
    pub flags: u8,
}

fn two(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |two| u16::from_be_bytes(*two))
}

fn four(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_be_bytes(*four))
}

fn sixteen(bytes: &[u8], at: usize) -> u128 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |all| u128::from_be_bytes(*all))
}

/// A sum of words of 16 bits, folded into one.
#[inline(always)]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// The words of an IPv6 address, not folded.
#[inline(always)]
const fn words(address: Ipv6Addr) -> u64 {
    let bits = address.to_bits();
    let (high, low) = ((bits >> 64) as u64, bits as u64);
    (high >> 32) + (high & 0xffff_ffff) + (low >> 32) + (low & 0xffff_ffff)
}

/// Protocol, ports and flags of what follows an IP header of `at` bytes.
#[inline(always)]
fn transport(bytes: &[u8], at: usize, protocol: u8, payload: u16) -> Option<(u16, u16, u8)> {
    let least = match protocol {
        TCP => 20,
        UDP => 8,
        _ => return None,
    };
    let header = bytes.get(at..at + least).filter(|_| usize::from(payload) >= least)?;
    let flags = if protocol == TCP { header.get(13).copied().unwrap_or(0) } else { 0 };
    Some((two(header, 0), two(header, 2), flags))
}

impl<A> WithPorts<A> {
    /// Where its checksum is, behind its IP header.
    const fn checksum_at(&self) -> usize {
        if self.protocol == TCP { 16 } else { 6 }
    }

    /// Writes ports, and a checksum over other addresses. Sums of the words of both addresses: `old`, `new`.
    #[inline(always)]
    fn put_ports(
        &self,
        transport: &mut [u8],
        (sport, dport): (u16, u16),
        (old, new): (u64, u64),
        sum: Sum,
    ) -> Option<()> {
        let at = self.checksum_at();
        let before = two(transport, at);
        let ports = |sport: u16, dport: u16| u64::from(sport) + u64::from(dport);
        let after = match sum {
            // RFC 768: 0 says that there is no checksum.
            _ if self.protocol == UDP && before == 0 => 0,
            Sum::Whole => {
                let gone = fold(old + ports(self.ends.sport, self.ends.dport));
                !fold(u64::from(!before) + u64::from(!gone) + new + ports(sport, dport))
            }
            Sum::Pseudo => fold(u64::from(before) + u64::from(!fold(old)) + new),
        };
        let after = if self.protocol == UDP && before != 0 && after == 0 { 0xffff } else { after };
        let both = u32::from(sport) << 16 | u32::from(dport);
        *transport.first_chunk_mut()? = both.to_be_bytes();
        *transport.get_mut(at..)?.first_chunk_mut()? = after.to_be_bytes();
        Some(())
    }
}

impl WithPorts<Ipv6Addr> {
    /// Reads such an IPv6 packet; `None` if it is another, or cut short.
    #[inline(always)]
    pub fn read6(bytes: &[u8]) -> Option<Self> {
        let ip: &[u8; IP6] = bytes.first_chunk()?;
        let (first, payload, protocol) = (four(ip, 0), two(ip, 4), ip[6]);
        let (sport, dport, flags) = transport(bytes, IP6, protocol, payload)?;
        let (src, dst) = (Ipv6Addr::from_bits(sixteen(ip, 8)), Ipv6Addr::from_bits(sixteen(ip, 24)));
        let ends = Ends { src, dst, sport, dport };
        let class = (first >> 20) as u8;
        let packet = WithPorts { ends, protocol, class, hops: ip[7], payload, flags };
        (first >> 28 == 6).then_some(packet)
    }

    /// Gives it an IPv4 header, which begins 20 bytes behind the old one, and other ports. `id`: the identification of a packet that
    /// may be fragmented. `None`, and nothing changes, if it is too long for IPv4.
    #[inline(always)]
    pub fn to4(&self, bytes: &mut [u8], to: &Ends<Ipv4Addr>, (sum, id): (Sum, u16)) -> Option<()> {
        let total = self.payload.checked_add(IP4 as u16)?;
        let (header, transport) = bytes.get_mut(DIFFERENCE..)?.split_first_chunk_mut::<IP4>()?;
        let (src, dst) = (to.src.to_bits(), to.dst.to_bits());
        let new = u64::from(src) + u64::from(dst);
        self.put_ports(
            transport,
            (to.sport, to.dport),
            (words(self.ends.src) + words(self.ends.dst), new),
            sum,
        )?;
        let (id, flags) = if usize::from(total) <= SMALL { (id, 0) } else { (0, 0x4000_u16) };
        let first = 0x4500_0000 | u32::from(self.class) << 16 | u32::from(total);
        let second = u32::from(id) << 16 | u32::from(flags);
        let third = u32::from(self.hops) << 24 | u32::from(self.protocol) << 16;
        let sum = !fold(u64::from(first) + u64::from(second) + u64::from(third) + new);
        let words = [first, second, third | u32::from(sum), src, dst];
        for (to, word) in header.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word.to_be_bytes();
        }
        Some(())
    }
}

impl WithPorts<Ipv4Addr> {
    /// Reads such an IPv4 packet; `None` if it is another, or cut short, or UDP without a checksum.
    #[inline(always)]
    pub fn read4(bytes: &[u8]) -> Option<Self> {
        Self::read4_as_it_is(bytes).filter(|seen| seen.protocol == TCP || two(bytes, IP4 + 6) != 0)
    }

    /// The same, and UDP without a checksum, too: of packets that are not translated.
    #[inline(always)]
    pub fn read4_as_it_is(bytes: &[u8]) -> Option<Self> {
        let ip: &[u8; IP4] = bytes.first_chunk()?;
        let (total, flags) = (two(ip, 2), two(ip, 6));
        let (payload, protocol) = (total.checked_sub(IP4 as u16)?, ip[9]);
        // Neither more fragments nor an offset.
        if ip[0] != 0x45 || flags & 0x3fff != 0 {
            return None;
        }
        let (sport, dport, flags) = transport(bytes, IP4, protocol, payload)?;
        let (src, dst) = (Ipv4Addr::from_bits(four(ip, 12)), Ipv4Addr::from_bits(four(ip, 16)));
        let ends = Ends { src, dst, sport, dport };
        Some(WithPorts { ends, protocol, class: ip[1], hops: ip[8], payload, flags })
    }

    /// Gives it an IPv6 header, which begins 20 bytes in front of the old one, and other ports. `bytes` begin there. `None`: there
    /// are too few of them.
    #[inline(always)]
    pub fn to6(&self, bytes: &mut [u8], to: &Ends<Ipv6Addr>, sum: Sum) -> Option<()> {
        let (header, transport) = bytes.split_first_chunk_mut::<IP6>()?;
        let old = u64::from(self.ends.src.to_bits()) + u64::from(self.ends.dst.to_bits());
        let new = words(to.src) + words(to.dst);
        self.put_ports(transport, (to.sport, to.dport), (old, new), sum)?;
        let first = 6_u32 << 28 | u32::from(self.class) << 20;
        let second = u32::from(self.payload) << 16 | u32::from(self.protocol) << 8 | u32::from(self.hops);
        *header.first_chunk_mut()? = first.to_be_bytes();
        *header.get_mut(4..)?.first_chunk_mut()? = second.to_be_bytes();
        *header.get_mut(8..)?.first_chunk_mut()? = to.src.octets();
        *header.get_mut(24..)?.first_chunk_mut()? = to.dst.octets();
        Some(())
    }
}
