//! A packet gets another tuple.

use shoal_buffer::{Flags, Packet};

use crate::delta::Delta;
use crate::tuple::{Kind, Tuple};

/// What a packet's bytes become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rewrite {
    /// The new tuple.
    pub to: Tuple,
    /// What the addresses do to a checksum.
    pub addresses: Delta,
    /// What addresses and ports together do to it; of an ICMP query, what the identifier does.
    pub transport: Delta,
}

/// What the checksum of the transport header is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    /// All of it.
    Whole,
    /// The sum of the pseudo header: a device completes it.
    Pseudo,
}

impl Sum {
    /// That of a packet.
    #[inline(always)]
    pub fn of(pkt: &Packet<'_>) -> Sum {
        if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) { Sum::Pseudo } else { Sum::Whole }
    }
}

impl Rewrite {
    /// From one tuple to another. What is known to stay costs nothing.
    #[inline(always)]
    pub const fn new(from: Tuple, to: Tuple, protocol: u8) -> Self {
        let addresses = Delta::addresses(from, to);
        let transport = match protocol {
            // RFC 792: no pseudo header.
            crate::tuple::ICMP => Delta::NONE.word(from.sport, to.sport),
            _ => addresses.ports(from, to),
        };
        Rewrite { to, addresses, transport }
    }

    /// Writes the IP header.
    #[inline(always)]
    fn write_ip(&self, ip: &mut [u8; 20]) {
        let sum = self.addresses.apply(u16::from_be_bytes([ip[10], ip[11]]));
        [ip[10], ip[11]] = sum.to_be_bytes();
        [ip[12], ip[13], ip[14], ip[15]] = self.to.src.to_be_bytes();
        [ip[16], ip[17], ip[18], ip[19]] = self.to.dst.to_be_bytes();
    }

    /// Rewrites a packet whose IP header of `header` bytes is at the front. `first`: its transport header is here. `None`, and
    /// the packet is spoilt, if it is cut short, which who read its tuple has seen already.
    #[inline(always)]
    pub fn write(&self, bytes: &mut [u8], header: usize, kind: Kind, first: bool, sum: Sum) -> Option<()> {
        self.write_ip(bytes.first_chunk_mut()?);
        if !first {
            return Some(());
        }
        let transport = bytes.get_mut(header..)?;
        // The most frequent ones first: a table of jumps takes longer.
        if kind == Kind::Udp {
            return self.write_udp(transport, sum);
        }
        if kind == Kind::Tcp {
            return self.write_tcp(transport, sum);
        }
        if kind == Kind::Query { self.write_query(transport) } else { Some(()) }
    }

    /// As [`Self::write`], of a packet that [`PortPacket::read`](crate::PortPacket::read) has read.
    #[inline(always)]
    pub fn write_port_packet(&self, bytes: &mut [u8], is_tcp: bool, sum: Sum) -> Option<()> {
        let (ip, transport) = bytes.split_first_chunk_mut()?;
        self.write_ip(ip);
        if is_tcp { self.write_tcp(transport, sum) } else { self.write_udp(transport, sum) }
    }

    #[inline(always)]
    fn write_ports(&self, bytes: &mut [u8]) -> Option<()> {
        let ports: &mut [u8; 4] = bytes.first_chunk_mut()?;
        *ports = (u32::from(self.to.sport) << 16 | u32::from(self.to.dport)).to_be_bytes();
        Some(())
    }

    #[inline(always)]
    fn summed(&self, old: u16, sum: Sum) -> u16 {
        match sum {
            Sum::Whole => self.transport.apply(old),
            Sum::Pseudo => self.addresses.add(old),
        }
    }

    #[inline(always)]
    fn write_tcp(&self, bytes: &mut [u8], sum: Sum) -> Option<()> {
        let field: &mut [u8; 2] = bytes.get_mut(16..)?.first_chunk_mut()?;
        *field = self.summed(u16::from_be_bytes(*field), sum).to_be_bytes();
        self.write_ports(bytes)
    }

    #[inline(always)]
    fn write_udp(&self, bytes: &mut [u8], sum: Sum) -> Option<()> {
        let field: &mut [u8; 2] = bytes.get_mut(6..)?.first_chunk_mut()?;
        let old = u16::from_be_bytes(*field);
        // RFC 768: 0 says that there is no checksum, so that of a sum of 0 is 0xffff.
        if old != 0 {
            let new = self.summed(old, sum);
            *field = (if new == 0 { 0xffff } else { new }).to_be_bytes();
        }
        self.write_ports(bytes)
    }

    #[inline(always)]
    fn write_query(&self, bytes: &mut [u8]) -> Option<()> {
        let icmp: &mut [u8; 6] = bytes.first_chunk_mut()?;
        let sum = self.transport.apply(u16::from_be_bytes([icmp[2], icmp[3]]));
        [icmp[2], icmp[3]] = sum.to_be_bytes();
        [icmp[4], icmp[5]] = self.to.sport.to_be_bytes();
        Some(())
    }
}
