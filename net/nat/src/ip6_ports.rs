//! TCP and UDP over IPv6 without extension headers: what nearly all packets are, read at once and rewritten at once.

use shoal_wire::{Ip6Header, IpProtocol};

use crate::delta::Delta;
use crate::rewrite::Sum;
use crate::tuple::Kind;

/// An IPv6 packet with ports, and without extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6PortPacket {
    /// Its source address.
    pub src: u128,
    /// Its destination address.
    pub dst: u128,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Whether it is TCP. If not it is UDP.
    pub is_tcp: bool,
    /// TCP's flags; 0 of UDP.
    pub flags: u8,
    /// Hops that are left.
    pub hops: u8,
}

impl Ip6PortPacket {
    /// Bytes up to the end of UDP's header.
    const LEN: usize = Ip6Header::LEN + 8;
    /// Bytes up to the end of TCP's checksum.
    const TCP_LEN: usize = Ip6Header::LEN + 18;
    /// Where TCP's flags are.
    const FLAGS: usize = Ip6Header::LEN + 13;

    /// Reads a packet; `None` if it is anything else, or cut short.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<Ip6PortPacket> {
        let ip: &[u8; Self::LEN] = bytes.first_chunk()?;
        let is_tcp = ip[6] == IpProtocol::TCP.0;
        if ip[0] >> 4 != 6 || !(is_tcp || ip[6] == IpProtocol::UDP.0) {
            return None;
        }
        let flags = if is_tcp { bytes.first_chunk::<{ Self::TCP_LEN }>()?[Self::FLAGS] } else { 0 };
        let addresses: &[[u8; 16]; 2] = &[*ip[8..].first_chunk()?, *ip[24..].first_chunk()?];
        let [src, dst] = addresses.map(u128::from_be_bytes);
        let [sport, dport] = [[ip[40], ip[41]], [ip[42], ip[43]]].map(u16::from_be_bytes);
        Some(Ip6PortPacket { src, dst, sport, dport, is_tcp, flags, hops: ip[7] })
    }

    /// What it is.
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        if self.is_tcp { Kind::Tcp } else { Kind::Udp }
    }
}

/// What the bytes of such a packet become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip6Rewrite {
    /// The new source address.
    pub src: u128,
    /// The new destination address.
    pub dst: u128,
    /// The new source port.
    pub sport: u16,
    /// The new destination port.
    pub dport: u16,
    /// What the addresses do to a checksum.
    pub addresses: Delta,
    /// What addresses and ports together do to it.
    pub transport: Delta,
}

impl Ip6Rewrite {
    /// Rewrites a packet that [`Ip6PortPacket::read`] has read; `None`, and it is as it was, if it has not.
    #[inline(always)]
    pub fn write(&self, bytes: &mut [u8], is_tcp: bool, sum: Sum) -> Option<()> {
        let at = if is_tcp { 16 } else { 6 };
        let (ip, upper): (&mut [u8; Ip6Header::LEN], _) = bytes.split_first_chunk_mut()?;
        let field: &mut [u8; 2] = upper.get_mut(at..)?.first_chunk_mut()?;
        let old = u16::from_be_bytes(*field);
        // RFC 6935: a tunnel's UDP may have no checksum.
        if is_tcp || old != 0 {
            let new = match sum {
                Sum::Whole => self.transport.apply(old),
                Sum::Pseudo => self.addresses.add(old),
            };
            *field = (if !is_tcp && new == 0 { 0xffff } else { new }).to_be_bytes();
        }
        let ports: &mut [u8; 4] = upper.first_chunk_mut()?;
        *ports = (u32::from(self.sport) << 16 | u32::from(self.dport)).to_be_bytes();
        *ip[8..].first_chunk_mut()? = self.src.to_be_bytes();
        *ip[24..].first_chunk_mut()? = self.dst.to_be_bytes();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use shoal_wire::packet::Packet;
    use shoal_wire::{MacAddress, TcpFlags};

    use super::*;
    use crate::ip6::{End, Ip6Seen};

    fn packets() -> Vec<Vec<u8>> {
        let address = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, n, 0, 0xffff, 0xfffe, n);
        let start = || Packet::ethernet(MacAddress([2; 6]), MacAddress([3; 6])).ip6(address(1), address(2));
        let payloads = [&b""[..], b"odd", b"some more"];
        let of = |payload: &[u8]| {
            [
                start().tcp(5000, 80, TcpFlags(0x12)).payload(payload).build(),
                start().udp(5000, 53).payload(payload).build(),
            ]
        };
        payloads.into_iter().flat_map(of).map(|frame| frame[14..].to_vec()).collect()
    }

    #[test]
    fn all_at_once_is_the_same_as_one_after_the_other() {
        let to = (Ipv6Addr::LOCALHOST.to_bits(), u128::MAX - 7, 0xffff, 0);
        for bytes in packets() {
            let seen = Ip6PortPacket::read(&bytes).unwrap();
            let addresses = Delta::NONE.wide(seen.src, to.0).wide(seen.dst, to.1);
            let transport = addresses.word(seen.sport, to.2).word(seen.dport, to.3);
            let rewrite = Ip6Rewrite { src: to.0, dst: to.1, sport: to.2, dport: to.3, addresses, transport };
            for sum in [Sum::Whole, Sum::Pseudo] {
                let (mut at_once, mut in_turn) = (bytes.clone(), bytes.clone());
                rewrite.write(&mut at_once, seen.is_tcp, sum).unwrap();
                let slow = Ip6Seen::read(&in_turn).unwrap();
                for (end, new, port) in [(End::Source, to.0, to.2), (End::Destination, to.1, to.3)] {
                    slow.replace(&mut in_turn, end, new, sum).unwrap();
                    slow.replace_port(&mut in_turn, end, port, sum).unwrap();
                }
                assert_eq!(at_once, in_turn, "{sum:?}");
            }
        }
    }

    #[test]
    fn what_is_cut_short_or_has_other_headers_is_not_read() {
        for bytes in packets() {
            let least = if bytes[6] == 6 { 58 } else { 48 };
            for len in 0..bytes.len() {
                assert_eq!(Ip6PortPacket::read(&bytes[..len]).is_some(), len >= least, "{len}");
            }
            for (at, byte) in [(6, 44), (6, 58), (0, 0x40)] {
                let mut other = bytes.clone();
                other[at] = byte;
                assert_eq!(Ip6PortPacket::read(&other), None);
            }
        }
    }
}
