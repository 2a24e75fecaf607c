//! What the first fragment of a datagram says of its transport: for every fragment, and every packet that is none.

use shoal_wire::{IpProtocol, TcpFlags};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What shallow virtual reassembly leaves in packets for the features behind it, in a slot of its own:
/// [`Reassembly::words`](crate::Reassembly::words) is the key.
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
    /// first fragment that hides its flags is nobody's friend.
    pub fn read(protocol: IpProtocol, bytes: &[u8]) -> Option<L4> {
        let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let long = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let mut l4 = L4 { protocol: protocol.0, ..L4::default() };
        match protocol {
            IpProtocol::TCP => {
                (l4.src_port, l4.dst_port) = (word(0)?, word(2)?);
                (l4.tcp_seq_number, l4.tcp_ack_number) = (long(4)?, long(8)?);
                l4.icmp_type_or_tcp_flags = *bytes.get(13)?;
            }
            IpProtocol::UDP | IpProtocol::SCTP => (l4.src_port, l4.dst_port) = (word(0)?, word(2)?),
            IpProtocol::ICMP | IpProtocol::ICMP6 => {
                l4.icmp_type_or_tcp_flags = *bytes.first()?;
                if matches!(
                    (protocol, l4.icmp_type_or_tcp_flags),
                    (IpProtocol::ICMP, 0 | 8) | (IpProtocol::ICMP6, 128 | 129)
                ) {
                    (l4.src_port, l4.dst_port) = (word(4)?, word(4)?);
                }
            }
            _ => {}
        }
        Some(l4)
    }

    /// TCP's flags, of a TCP packet.
    pub fn tcp_flags(&self) -> TcpFlags {
        TcpFlags(self.icmp_type_or_tcp_flags)
    }
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
