//! What a packet's flow is, and its hash: the same on all routers, so that each of them gives a flow the same server.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::icmp::{Fault, Quoted};
use shoal_nat::{Ip6Seen, Kind, Seen};
use shoal_reassembly::L4;
use shoal_wire::IpProtocol;
use shoal_wire::hash::{Flow4, Flow6, Symmetry};

/// Bytes of an ICMPv6 error in front of the packet that it carries.
const ICMP6_HEADER: usize = 8;

/// A client's flow to a virtual address. An ICMP error that is about one belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The client: an IPv4 address has 32 bits.
    pub src: u128,
    /// The virtual address.
    pub dst: u128,
    /// The client's port.
    pub sport: u16,
    /// The service's.
    pub dport: u16,
    /// The protocol above IP.
    pub protocol: IpProtocol,
    /// What the packet is.
    pub kind: Kind,
    /// Its ports are not known: it is a fragment that is not the first, and no reassembly has seen the first one.
    pub is_later: bool,
}

impl Flow {
    /// Reads a packet whose IP header is at the front. `words`: what shallow reassembly knows of its transport header.
    pub fn read(is_ip6: bool, bytes: &[u8], words: &L4) -> Result<Flow, Fault> {
        if is_ip6 { Flow::read6(bytes, words) } else { Flow::read4(bytes, words) }
    }

    fn read4(bytes: &[u8], words: &L4) -> Result<Flow, Fault> {
        let seen = Seen::read(bytes).ok_or(Fault::Short)?;
        let (mut of, mut protocol) = (seen.tuple, seen.protocol);
        if seen.kind == Kind::Error {
            let quoted = Quoted::read(bytes, seen.header.into(), None)?;
            (of, protocol) = (quoted.answer, quoted.protocol);
        }
        let flow = Flow {
            src: of.src.into(),
            dst: of.dst.into(),
            sport: of.sport,
            dport: of.dport,
            protocol: IpProtocol(protocol),
            kind: seen.kind,
            is_later: !seen.first,
        };
        Ok(flow.with(words))
    }

    fn read6(bytes: &[u8], words: &L4) -> Result<Flow, Fault> {
        let seen = Ip6Seen::read(bytes)?;
        let flow = Flow {
            src: seen.src,
            dst: seen.dst,
            sport: 0,
            dport: 0,
            protocol: seen.protocol,
            kind: Kind::Other,
            is_later: !seen.first,
        };
        if !seen.first {
            return Ok(flow.with(words));
        }
        let upper = bytes.get(seen.offset..).ok_or(Fault::Short)?;
        let word = |at: usize| upper.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
        let ports = |flow: Flow, kind| {
            let (sport, dport) = word(0).zip(word(2)).ok_or(Fault::Short)?;
            Ok(Flow { sport, dport, kind, ..flow })
        };
        match (seen.protocol, upper.first()) {
            (IpProtocol::TCP, _) => ports(flow, Kind::Tcp),
            (IpProtocol::UDP, _) => ports(flow, Kind::Udp),
            (IpProtocol::ICMP6, Some(128 | 129)) => {
                let id = word(4).ok_or(Fault::Short)?;
                Ok(Flow { sport: id, dport: id, kind: Kind::Query, ..flow })
            }
            (IpProtocol::ICMP6, _) if seen.quoted.is_some() => {
                let carried = bytes.get(seen.offset + ICMP6_HEADER..).ok_or(Fault::Short)?;
                let of = Flow6::of_packet(carried).ok_or(Fault::Short)?;
                // The carried packet is the server's; the flow is the client's.
                Ok(Flow {
                    src: of.dst.to_bits(),
                    dst: of.src.to_bits(),
                    sport: of.dst_port,
                    dport: of.src_port,
                    protocol: of.protocol,
                    kind: Kind::Error,
                    is_later: false,
                })
            }
            (IpProtocol::ICMP6, _) => Ok(Flow { kind: Kind::OtherIcmp, ..flow }),
            _ => Ok(flow),
        }
    }

    fn with(self, words: &L4) -> Flow {
        if !self.is_later || words.is_non_first_fragment == 0 || words.protocol != self.protocol.0 {
            return self;
        }
        Flow { sport: words.src_port, dport: words.dst_port, is_later: false, ..self }
    }

    /// Whether the flow's hash needs ports that are not known.
    pub fn lacks_ports(&self) -> bool {
        self.is_later && matches!(self.protocol, IpProtocol::TCP | IpProtocol::UDP)
    }

    /// 32 bits of the whole flow.
    #[inline(always)]
    pub fn hash(&self, is_ip6: bool) -> u32 {
        let Flow { src, dst, sport, dport, protocol, .. } = *self;
        if is_ip6 {
            let (src, dst) = (Ipv6Addr::from_bits(src), Ipv6Addr::from_bits(dst));
            return Flow6 { src, dst, src_port: sport, dst_port: dport, protocol }
                .hash(0, Symmetry::Directed);
        }
        let (src, dst) = (Ipv4Addr::from_bits(src as u32), Ipv4Addr::from_bits(dst as u32));
        Flow4 { src, dst, src_port: sport, dst_port: dport, protocol }.hash(0, Symmetry::Directed)
    }

    /// 32 bits of the client alone.
    #[inline(always)]
    pub fn hash_of_client(&self, is_ip6: bool) -> u32 {
        Flow { dst: 0, sport: 0, dport: 0, protocol: IpProtocol(0), ..*self }.hash(is_ip6)
    }
}
