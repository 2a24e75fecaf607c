//! `det44-in2out`, `det44-out2in`, `det44-hairpinning`.
//! features of `ip4-unicast` -> **det44-in2out** -> ip4-lookup | det44-hairpinning | ip4-icmp-error | another thread | the next
//! feature
//! features of `ip4-unicast` -> **det44-out2in** -> ip4-lookup | another thread | the next feature

mod in2out;
mod out2in;

pub use in2out::In2out;
pub use out2in::Out2in;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::Edge;
use shoal_nat::icmp::{Fault, Quoted};
use shoal_nat::{Kind, ParsedPacket, Rewrite, Sum, Tuple};

use crate::sessions::{Direction, Flow, Refusal};
use crate::shared::Shared;

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// On, translated.
    #[node("ip4-lookup")]
    Lookup,
    /// To another host of this router.
    #[node("det44-hairpinning")]
    Hairpin,
    /// Its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// Another thread has its session.
    #[node("det44-in2out-handoff")]
    InHandoff,
    /// The same, towards a host.
    #[node("det44-out2in-handoff")]
    OutHandoff,
    /// The same, between two hosts.
    #[node("det44-hairpinning-handoff")]
    HairpinHandoff,
    /// It is not translated.
    Feature(Edge),
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Unsupported protocol
    #[counter("Unsupported protocol")]
    UnsupportedProtocol,
    /// No translation
    #[counter("No translation")]
    NoTranslation,
    /// unsupported ICMP type
    #[counter("unsupported ICMP type")]
    BadIcmpType,
    /// Out of ports
    #[counter("Out of ports")]
    OutOfPorts,
    /// Maximum sessions exceeded
    #[counter("Maximum sessions exceeded")]
    MaxSessions,
    /// Fragments whose ports are not known
    #[counter("Fragments whose ports are not known")]
    Fragments,
    /// Malformed packets
    #[counter("Malformed packets")]
    Malformed,
    /// Good in2out packets processed
    #[counter("Good in2out packets processed")]
    #[severity(info)]
    In2out,
    /// Good out2in packets processed
    #[counter("Good out2in packets processed")]
    #[severity(info)]
    Out2in,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Short | Fault::Checksum => Error::Malformed,
            Fault::Unsupported => Error::BadIcmpType,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full | Refusal::HostFull => Error::MaxSessions,
            Refusal::OutOfPorts => Error::OutOfPorts,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{way}: sw_if_index {interface}, next index {next}, session {session}")]
pub struct Trace {
    /// Which node it is.
    pub way: &'static str,
    /// Where the packet came in.
    pub interface: u32,
    /// Where it goes.
    pub next: u16,
    /// The port that stands for the host; -1: it has no session.
    pub session: i64,
}

/// A packet that a session is looked for.
pub(crate) struct Asked {
    seen: ParsedPacket,
    /// Of an ICMP error: the packet it is about.
    quoted: Option<Quoted>,
    /// As a packet of the session in this direction has it.
    tuple: Tuple,
    protocol: u8,
}

impl Asked {
    /// Reads a packet.
    pub(crate) fn read(shared: &Shared, pkt: &Packet<'_>) -> Result<Asked, Error> {
        let mut seen = ParsedPacket::read(pkt.data()).ok_or(Error::Malformed)?;
        if seen.fragment && !seen.first {
            let words = shared.words.get(pkt);
            if words.is_non_first_fragment == 0 || words.protocol != seen.protocol {
                return Err(Error::Fragments);
            }
            (seen.tuple.sport, seen.tuple.dport) = (words.src_port, words.dst_port);
        }
        let asked =
            |seen: ParsedPacket| Asked { seen, quoted: None, tuple: seen.tuple, protocol: seen.protocol };
        match seen.kind {
            Kind::Tcp | Kind::Udp | Kind::Query => Ok(asked(seen)),
            Kind::Error => {
                let quoted = Quoted::read(pkt.data(), seen.header.into(), None)?;
                let (tuple, protocol) = (quoted.answer, quoted.protocol);
                Ok(Asked { seen, quoted: Some(quoted), tuple, protocol })
            }
            Kind::OtherIcmp => Err(Error::BadIcmpType),
            Kind::Other => Err(Error::UnsupportedProtocol),
        }
    }

    /// The far end, as sessions have it: queries have no port there.
    fn remote(&self, way: Direction) -> (std::net::Ipv4Addr, u16) {
        let (address, port) =
            if way == Direction::In2out { self.tuple.destination() } else { self.tuple.source() };
        (address, if self.is_query() { 0 } else { port })
    }

    fn is_query(&self) -> bool {
        self.protocol == shoal_nat::tuple::ICMP
    }

    /// Changes the packet.
    fn translate(&self, pkt: &mut Packet<'_>, way: Direction, flow: &Flow) -> Result<(), Error> {
        let Asked { seen, quoted, tuple, .. } = self;
        let ((host, port), (shared, open)) = ((flow.host, flow.port), flow.shared);
        let mut to = *tuple;
        match way {
            Direction::In2out => (to.src, to.sport) = (shared.to_bits(), open),
            Direction::Out2in => (to.dst, to.dport) = (host.to_bits(), port),
        }
        if self.is_query() {
            let id = if way == Direction::In2out { open } else { port };
            (to.sport, to.dport) = (id, id);
        }
        let header = usize::from(seen.header);
        let sum = Sum::of(pkt);
        let outer = match way {
            Direction::In2out => (to.src, seen.tuple.dst),
            Direction::Out2in => (seen.tuple.src, to.dst),
        };
        let bytes = pkt.data_mut();
        match quoted {
            Some(quoted) => Ok(quoted.write(bytes, header, outer, to)?),
            None => Rewrite::new(*tuple, to, seen.protocol)
                .write(bytes, header, seen.kind, seen.first, sum)
                .ok_or(Error::Malformed),
        }
    }
}
