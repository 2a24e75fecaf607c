//! `ip4-icmp-input`: check an ICMP message, pass it on by its type. RFC 792, RFC 1122, 3.2.2.
//! ip4-local -> **ip4-icmp-input** -> ip4-icmp-echo-request | ip4-icmp-listener | the node that learns path MTUs

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_wire::icmp4::code;
use shoal_wire::{Icmp4Echo, Icmp4Error, Icmp4Header, Icmp4Type, Ip4Header};

use crate::control::TypeTable;
use crate::sum;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Somebody wants an echo.
    #[node("ip4-icmp-echo-request")]
    EchoRequest,
    /// An echo, or an error: perhaps about something sent from here.
    #[node("ip4-icmp-listener")]
    Listener,
    /// "Fragmentation needed", to the node that learns from it first.
    TooBig(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// payload length too small for type
    #[counter("length_too_small_for_type")]
    TooShort,
    /// bad icmp checksum
    BadChecksum,
    /// invalid code for type
    #[counter("invalid_code_for_type")]
    Code,
    /// unknown type
    #[severity(warn)]
    UnknownType,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{icmp}")]
pub struct Trace {
    icmp: Icmp4Header,
}

/// Looks at messages to this router.
pub(crate) struct IcmpInput {
    /// Received messages by type.
    pub(crate) rx: Simple,
    /// Who takes messages first.
    pub(crate) takers: TypeTable,
}

/// The shortest message of a type that is passed on, and where to.
fn next(kind: Icmp4Type) -> Option<(Next, usize)> {
    match kind {
        Icmp4Type::ECHO_REQUEST => Some((Next::EchoRequest, Icmp4Echo::LEN)),
        Icmp4Type::ECHO_REPLY => Some((Next::Listener, Icmp4Echo::LEN)),
        kind if kind.is_error() => Some((Next::Listener, Icmp4Error::LEN)),
        _ => None,
    }
}

impl PacketNode for IcmpInput {
    const NAME: &'static str = "ip4-icmp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let ip = pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
        let header = ip.header_len();
        if header < Ip4Header::LEN {
            return Err(Error::TooShort);
        }
        let icmp = *pkt.header_at::<Icmp4Header>(header).ok_or(Error::TooShort)?;
        cx.trace(pkt, || Trace { icmp });
        self.rx.add(cx.thread(), usize::from(icmp.kind().0), 1);
        let checked = pkt.flags().has(Flags::L4_CHECKSUM_OK.with(Flags::L4_CHECKSUM_OFFLOAD));
        if !checked && sum::of(pkt, header).folded() != 0xffff {
            return Err(Error::BadChecksum);
        }
        let (next, least) = next(icmp.kind()).ok_or(Error::UnknownType)?;
        // The header of the type must lie in one piece with that of IPv4, as the nodes behind here read it.
        if pkt.segment_len() < header + least {
            return Err(Error::TooShort);
        }
        if next == Next::EchoRequest && icmp.code() != 0 {
            return Err(Error::Code);
        }
        if icmp.kind() == Icmp4Type::DESTINATION_UNREACHABLE
            && icmp.code() == code::FRAGMENTATION_NEEDED
            && let Some(edge) = self.takers.of(icmp.kind().0)
        {
            return Ok(Next::TooBig(edge));
        }
        Ok(next)
    }
}
