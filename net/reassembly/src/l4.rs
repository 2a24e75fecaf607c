//! What the first fragment of a datagram says of its transport: for every fragment, and every packet that is none.

use shoal_wire::{IpProtocol, TcpFlags};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What shallow virtual reassembly leaves in packets for the features behind it, in a slot of its own:
/// [`Reassembly::words`](crate::Reassembly::words) is the key.
///
/// They are for fragments. A whole packet says all of it itself: on a superpath its words may be zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct L4 {
    /// The protocol above IP and its extension headers.
    pub protocol: u8,
    /// An ICMP type, or TCP's flags.
    pub icmp_type_or_tcp_flags: u8,
    /// Not 0: these are another packet's words, this one has no transport header.
    pub is_non_first_fragment: u8,
    /// Not 0: it is a fragment.
    pub is_fragment: u8,
    /// Source port, or the identifier of an ICMP echo; 0 for protocols without.
    pub src_port: u16,
    /// Destination port, or the identifier of an ICMP echo.
    pub dst_port: u16,
    /// TCP's sequence number.
    pub tcp_seq_number: u32,
    /// TCP's acknowledgement number.
    pub tcp_ack_number: u32,
}

impl L4 {
    /// The words for fragments that are not the first.
    #[must_use]
    pub fn of_later(mut self) -> L4 {
        self.is_non_first_fragment = 1;
        self
    }

    /// Reads them from where the transport header begins; `None` when too little of it is there. RFC 1858, 4.2.1: a
    /// first fragment that hides its flags is dropped.
    pub fn read(protocol: IpProtocol, bytes: &[u8]) -> Option<L4> {
        Words::read(protocol, bytes).map(Words::l4)
    }

    /// Whether it is of a protocol that has words.
    pub fn is_known(&self) -> bool {
        matches!(
            IpProtocol(self.protocol),
            IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP | IpProtocol::ICMP | IpProtocol::ICMP6
        )
    }

    /// TCP's flags, of a TCP packet.
    pub fn tcp_flags(&self) -> TcpFlags {
        TcpFlags(self.icmp_type_or_tcp_flags)
    }
}

/// The same in two registers: many small fields that are copied as a whole right after they were written would have the
/// processor wait for its own stores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words([u64; 2]);

impl Words {
    /// As [`L4::read`].
    #[inline(always)]
    pub fn read(protocol: IpProtocol, bytes: &[u8]) -> Option<Words> {
        if protocol == IpProtocol::UDP {
            return Some(Words([word(IpProtocol::UDP, 0, ports(bytes)?), 0]));
        }
        if protocol == IpProtocol::TCP {
            let (ports, [.., flags]) = (ports(bytes)?, *bytes.first_chunk::<14>()?);
            let long = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
            // As both lie in memory one behind the other.
            let (sequence, acknowledgement) = (u64::from(long(4)?), u64::from(long(8)?));
            let numbers = if cfg!(target_endian = "little") {
                acknowledgement << 32 | sequence
            } else {
                sequence << 32 | acknowledgement
            };
            return Some(Words([word(IpProtocol::TCP, flags, ports), numbers]));
        }
        Words::read_other(protocol, bytes)
    }

    #[inline(never)]
    fn read_other(protocol: IpProtocol, bytes: &[u8]) -> Option<Words> {
        let no_ports = [0; 4];
        let (kind, ports) = match protocol {
            IpProtocol::SCTP => (0, ports(bytes)?),
            IpProtocol::ICMP | IpProtocol::ICMP6 => {
                let kind = *bytes.first()?;
                if matches!((protocol, kind), (IpProtocol::ICMP, 0 | 8) | (IpProtocol::ICMP6, 128 | 129)) {
                    let [high, low] = *bytes.get(4..)?.first_chunk()?;
                    (kind, [high, low, high, low])
                } else {
                    (kind, no_ports)
                }
            }
            _ => (0, no_ports),
        };
        Some(Words([word(protocol, kind, ports), 0]))
    }

    /// The fields.
    pub fn l4(self) -> L4 {
        let mut l4 = L4::default();
        self.put(&mut l4);
        l4
    }

    /// Writes the fields.
    #[inline(always)]
    pub fn put(self, to: &mut L4) {
        let Words([first, second]) = self;
        if let Some((low, high)) = to.as_mut_bytes().split_first_chunk_mut() {
            *low = first.to_ne_bytes();
            high.copy_from_slice(&second.to_ne_bytes());
        }
    }
}

/// The first four bytes.
#[inline(always)]
fn ports(bytes: &[u8]) -> Option<[u8; 4]> {
    bytes.first_chunk().copied()
}

/// The first half of the fields, with ports as they are in the packet.
#[inline(always)]
fn word(protocol: IpProtocol, kind: u8, [a, b, c, d]: [u8; 4]) -> u64 {
    let ([a, b], [c, d]) =
        (u16::from_be_bytes([a, b]).to_ne_bytes(), u16::from_be_bytes([c, d]).to_ne_bytes());
    u64::from_ne_bytes([protocol.0, kind, 0, 0, a, b, c, d])
}

impl std::fmt::Display for L4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let L4 { protocol, icmp_type_or_tcp_flags: kind, src_port, dst_port, .. } = self;
        let later = if self.is_non_first_fragment != 0 { ", not the first fragment" } else { "" };
        write!(
            f,
            "ip proto={protocol}, type/flags={kind}, l4 src-port={src_port}, l4 dst-port={dst_port}{later}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_flags_and_identifiers_are_read_and_too_little_is_refused() {
        let bytes: Vec<u8> = (1..=20).collect();
        let tcp = L4::read(IpProtocol::TCP, &bytes).unwrap();
        assert_eq!((tcp.src_port, tcp.dst_port, tcp.tcp_flags()), (0x0102, 0x0304, TcpFlags(14)));
        assert_eq!((tcp.tcp_seq_number, tcp.tcp_ack_number), (0x0506_0708, 0x090a_0b0c));
        let udp = L4::read(IpProtocol::UDP, &bytes).unwrap();
        assert_eq!((udp.src_port, udp.dst_port, udp.protocol), (0x0102, 0x0304, 17));
        let echo = L4::read(IpProtocol::ICMP, &[8, 0, 0, 0, 7, 9]).unwrap();
        assert_eq!((echo.icmp_type_or_tcp_flags, echo.src_port, echo.dst_port), (8, 0x0709, 0x0709));
        assert_eq!(L4::read(IpProtocol::ICMP6, &[1]).unwrap().src_port, 0);
        assert_eq!(L4::read(IpProtocol(200), &[]).unwrap().protocol, 200);
        for (protocol, most) in [(IpProtocol::TCP, 13), (IpProtocol::UDP, 3), (IpProtocol::ICMP, 0)] {
            for n in 0..=most {
                assert_eq!(L4::read(protocol, &bytes[..n]), None, "{protocol:?} {n}");
            }
        }
        assert_eq!(L4::read(IpProtocol::ICMP, &[8, 0, 0, 0, 7]), None);
    }
}
