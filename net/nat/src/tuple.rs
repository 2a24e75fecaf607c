//! Which addresses and ports a packet has.

use std::net::Ipv4Addr;

use shoal_wire::Ip4Header;

/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's.
pub const UDP: u8 = 17;
/// ICMP's.
pub const ICMP: u8 = 1;

/// From where to where: addresses and ports in host order. An ICMP query has its identifier in both ports; a protocol without
/// ports has zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tuple {
    /// Source address.
    pub src: u32,
    /// Destination address.
    pub dst: u32,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl Tuple {
    /// That of the answers.
    #[must_use]
    #[inline(always)]
    pub const fn reversed(self) -> Self {
        Tuple { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }

    /// Where it comes from.
    pub const fn source(self) -> (Ipv4Addr, u16) {
        (Ipv4Addr::from_bits(self.src), self.sport)
    }

    /// Where it goes.
    pub const fn destination(self) -> (Ipv4Addr, u16) {
        (Ipv4Addr::from_bits(self.dst), self.dport)
    }
}

/// What a packet is to a NAT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It has ports: TCP.
    Tcp,
    /// It has ports: UDP.
    Udp,
    /// An ICMP query or its answer: its identifier is its port.
    Query,
    /// An ICMP error: it is about another packet, which it carries.
    Error,
    /// Another ICMP message.
    OtherIcmp,
    /// A protocol without ports.
    Other,
}

/// What was read of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedPacket {
    /// From where to where; of a fragment that is not the first, without ports.
    pub tuple: Tuple,
    /// The protocol above IP.
    pub protocol: u8,
    /// What it is.
    pub kind: Kind,
    /// Bytes of the IP header.
    pub header: u8,
    /// Whether it is part of a datagram.
    pub fragment: bool,
    /// Whether the transport header is here.
    pub first: bool,
    /// TCP's flags.
    pub flags: u8,
}

/// TCP or UDP with its ports, in an IPv4 packet without options that is no fragment: what nearly all packets are, read at
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortPacket {
    /// Source and destination address, as they stand in the header.
    pub addresses: u64,
    /// Source and destination port, as they stand in the header.
    pub ports: u32,
    /// Whether it is TCP. If not it is UDP.
    pub is_tcp: bool,
    /// TCP's flags; 0 of UDP.
    pub flags: u8,
    /// Time to live.
    pub ttl: u8,
}

impl PortPacket {
    /// Bytes of the IP header and the ports' part of UDP.
    const LEN: usize = 28;
    /// Where TCP's flags are.
    const FLAGS: usize = 33;
    /// Bytes of the IP header and of TCP's up to its checksum.
    const TCP_LEN: usize = 38;

    /// Reads a packet; `None` if it is anything else, or cut short.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<PortPacket> {
        let ip: &[u8; Self::LEN] = bytes.first_chunk()?;
        let is_whole = [ip[6] & 0x3f, ip[7]] == [0; 2];
        let protocol = ip[9];
        let is_tcp = protocol == TCP;
        if ip[0] != Ip4Header::VERSION_IHL_NO_OPTIONS || !is_whole || !(is_tcp || protocol == UDP) {
            return None;
        }
        let addresses = u64::from_be_bytes([ip[12], ip[13], ip[14], ip[15], ip[16], ip[17], ip[18], ip[19]]);
        let ports = u32::from_be_bytes([ip[20], ip[21], ip[22], ip[23]]);
        let flags = if is_tcp { bytes.first_chunk::<{ Self::TCP_LEN }>()?[Self::FLAGS] } else { 0 };
        Some(PortPacket { addresses, ports, is_tcp, flags, ttl: ip[8] })
    }

    /// From where to where.
    #[inline(always)]
    pub const fn tuple(&self) -> Tuple {
        Tuple {
            src: (self.addresses >> 32) as u32,
            dst: self.addresses as u32,
            sport: (self.ports >> 16) as u16,
            dport: self.ports as u16,
        }
    }

    /// Its protocol.
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        if self.is_tcp { TCP } else { UDP }
    }

    /// What it is.
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        if self.is_tcp { Kind::Tcp } else { Kind::Udp }
    }
}

/// Whether an ICMP type is a query that is translated by its identifier, or the answer to one (RFC 5508, 3.1: echo is a must).
pub const fn is_query(kind: u8) -> bool {
    matches!(kind, 0 | 8)
}

/// Whether an ICMP type is an error, which carries the packet it is about.
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// A word of two bytes.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A word of four bytes.
#[inline(always)]
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl ParsedPacket {
    /// Reads an IPv4 packet; `None` if its header, or what its transport header says, is cut short.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<ParsedPacket> {
        let ip: &[u8; 20] = bytes.first_chunk()?;
        let header = (ip[0] & 15) << 2;
        let offset = u16::from_be_bytes([ip[6], ip[7]]);
        let protocol = ip[9];
        let src = u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]]);
        let dst = u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]);
        let first = offset.trailing_zeros() >= 13;
        let mut seen = ParsedPacket {
            tuple: Tuple { src, dst, sport: 0, dport: 0 },
            protocol,
            kind: Kind::Other,
            header,
            fragment: offset & 0x3fff != 0,
            first,
            flags: 0,
        };
        if first {
            seen.read_transport(bytes.get(usize::from(header)..)?)?;
        } else {
            seen.kind = match protocol {
                TCP => Kind::Tcp,
                UDP => Kind::Udp,
                ICMP => Kind::Query,
                _ => Kind::Other,
            };
        }
        Some(seen)
    }

    #[inline(always)]
    fn read_transport(&mut self, bytes: &[u8]) -> Option<()> {
        match self.protocol {
            TCP | UDP => {
                let ports = long(bytes, 0)?;
                (self.tuple.sport, self.tuple.dport) = ((ports >> 16) as u16, ports as u16);
                self.kind = Kind::Udp;
                if self.protocol == TCP {
                    self.kind = Kind::Tcp;
                    self.flags = *bytes.get(13)?;
                }
            }
            ICMP => self.read_icmp(bytes)?,
            _ => {}
        }
        Some(())
    }

    fn read_icmp(&mut self, bytes: &[u8]) -> Option<()> {
        let kind = *bytes.first()?;
        self.kind = match kind {
            kind if is_query(kind) => {
                let id = word(bytes, 4)?;
                (self.tuple.sport, self.tuple.dport) = (id, id);
                Kind::Query
            }
            kind if is_error(kind) => Kind::Error,
            _ => Kind::OtherIcmp,
        };
        Some(())
    }
}
