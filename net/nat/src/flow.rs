//! What a packet's flow is, of either family, and its hash: the same on all routers, so that each of them gives a flow the same server.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_wire::IpProtocol;
use shoal_wire::hash::{Flow4, Flow6, Symmetry};

use crate::icmp::{Fault, Quoted};
use crate::ip6::Ip6Seen;
use crate::tuple::{Kind, ParsedPacket, is_query};

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
    /// TCP's flags.
    pub flags: u8,
}

/// What shallow reassembly knows of the transport header of a fragment that is not the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaterFragment {
    /// The protocol above IP.
    pub protocol: u8,
    /// An ICMP type, or TCP's flags.
    pub what: u8,
    /// Source port, or the identifier of an ICMP echo.
    pub sport: u16,
    /// Destination port, or the same identifier.
    pub dport: u16,
}

impl Flow {
    /// Reads a packet whose IP header is at the front. `later`: what is known of its transport header, if it has none.
    ///
    /// # Errors
    /// It is cut short, or is an error about a packet that no flow has.
    #[inline]
    pub fn read(is_ip6: bool, bytes: &[u8], later: Option<LaterFragment>) -> Result<Flow, Fault> {
        let flow = if is_ip6 { Flow::read6(bytes) } else { Flow::read4(bytes) }?;
        Ok(match later {
            Some(later) if flow.is_later => flow.with(later),
            _ => flow,
        })
    }

    fn read4(bytes: &[u8]) -> Result<Flow, Fault> {
        let seen = ParsedPacket::read(bytes).ok_or(Fault::Short)?;
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
            flags: seen.flags,
        };
        Ok(flow)
    }

    fn read6(bytes: &[u8]) -> Result<Flow, Fault> {
        let seen = Ip6Seen::read(bytes)?;
        let flow = Flow {
            src: seen.src,
            dst: seen.dst,
            sport: 0,
            dport: 0,
            protocol: seen.protocol,
            kind: Kind::Other,
            is_later: !seen.first,
            flags: 0,
        };
        if !seen.first {
            return Ok(flow);
        }
        let upper = bytes.get(seen.offset..).ok_or(Fault::Short)?;
        let word = |at: usize| upper.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
        let ports = |flow: Flow, kind| {
            let (sport, dport) = word(0).zip(word(2)).ok_or(Fault::Short)?;
            Ok(Flow { sport, dport, kind, ..flow })
        };
        match (seen.protocol, upper.first()) {
            (IpProtocol::TCP, _) => {
                let flags = upper.get(13).copied().ok_or(Fault::Short)?;
                ports(Flow { flags, ..flow }, Kind::Tcp)
            }
            (IpProtocol::UDP, _) => ports(flow, Kind::Udp),
            (IpProtocol::ICMP6, Some(128 | 129)) => {
                let id = word(4).ok_or(Fault::Short)?;
                Ok(Flow { sport: id, dport: id, kind: Kind::Query, ..flow })
            }
            (IpProtocol::ICMP6, _) if seen.quoted.is_some() => {
                let carried = bytes.get(seen.offset + ICMP6_HEADER..).ok_or(Fault::Short)?;
                // The carried packet is the server's; the flow is the client's.
                Ok(carried6(carried).ok_or(Fault::Short)?)
            }
            (IpProtocol::ICMP6, _) => Ok(Flow { kind: Kind::OtherIcmp, ..flow }),
            _ => Ok(flow),
        }
    }

    fn with(self, later: LaterFragment) -> Flow {
        let LaterFragment { protocol, what, sport, dport } = later;
        if protocol != self.protocol.0 {
            return self;
        }
        let (kind, flags) = match self.protocol {
            IpProtocol::TCP => (Kind::Tcp, what),
            IpProtocol::UDP => (Kind::Udp, 0),
            IpProtocol::ICMP if is_query(what) => (Kind::Query, 0),
            IpProtocol::ICMP6 if matches!(what, 128 | 129) => (Kind::Query, 0),
            IpProtocol::ICMP | IpProtocol::ICMP6 => (Kind::OtherIcmp, 0),
            _ => (self.kind, 0),
        };
        Flow { sport, dport, kind, flags, is_later: false, ..self }
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

/// The flow that an ICMPv6 error is about: the carried packet's, reversed.
fn carried6(carried: &[u8]) -> Option<Flow> {
    let of = Flow6::of_packet(carried)?;
    let (mut sport, mut dport) = (of.dst_port, of.src_port);
    if of.protocol == IpProtocol::ICMP6 {
        let id = Ip6Seen::echo_of(carried);
        (sport, dport) = (id, id);
    }
    let (src, dst, protocol) = (of.dst.to_bits(), of.src.to_bits(), of.protocol);
    Some(Flow { src, dst, sport, dport, protocol, kind: Kind::Error, is_later: false, flags: 0 })
}
