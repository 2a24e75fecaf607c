//! `ip6-icmp-input`: check an ICMPv6 message, pass it on by its type. RFC 4443, 2; RFC 4861, 6 to 8.
//! ip6-local -> **ip6-icmp-input** -> ip6-icmp-echo-request | ip6-icmp-listener | the taker of the type

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_wire::{Icmp6Echo, Icmp6Error, Icmp6Header, Icmp6Type, Ip6Header};

use crate::control::TypeTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Somebody wants an echo.
    #[node("ip6-icmp-echo-request")]
    EchoRequest,
    /// An echo, or an error: perhaps about something sent from here.
    #[node("ip6-icmp-listener")]
    Listener,
    /// The taker of the type.
    Taker(Edge),
}

/// Why a packet is dropped here. Texts are VPP's.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// payload length too small for type
    #[counter("length_too_small_for_type")]
    TooShort,
    /// invalid code for type
    #[counter("invalid_code_for_type")]
    Code,
    /// invalid hop limit for type
    #[counter("invalid_hop_limit_for_type")]
    HopLimit,
    /// unknown type
    #[severity(warn)]
    UnknownType,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{icmp}")]
pub struct Trace {
    icmp: Icmp6Header,
}

/// Looks at messages to this router.
pub(crate) struct Icmp6Input {
    /// Received messages by type.
    pub(crate) rx: Simple,
    pub(crate) takers: TypeTable,
}

/// Where ICMPv6 begins, counted from the packet's front.
pub(crate) fn message_at(pkt: &Packet<'_>) -> Option<usize> {
    usize::try_from(i32::from(pkt.meta().l4) - i32::from(pkt.current())).ok()
}

/// The shortest message of a type: RFC 4443, 3 and 4; RFC 4861, 4; RFC 2710, 3; RFC 3810, 5.2.
fn shortest(kind: Icmp6Type) -> usize {
    match kind {
        Icmp6Type::ECHO_REQUEST | Icmp6Type::ECHO_REPLY => Icmp6Echo::LEN,
        Icmp6Type::ROUTER_SOLICITATION | Icmp6Type::MULTICAST_LISTENER_REPORT_V2 => 8,
        Icmp6Type::ROUTER_ADVERTISEMENT => 16,
        Icmp6Type::NEIGHBOR_SOLICITATION | Icmp6Type::NEIGHBOR_ADVERTISEMENT => 24,
        Icmp6Type::REDIRECT => 40,
        kind if kind.is_listener_discovery() => 24,
        kind if kind.is_error() => Icmp6Error::LEN,
        _ => Icmp6Header::LEN,
    }
}

impl PacketNode for Icmp6Input {
    const NAME: &'static str = "ip6-icmp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let hop_limit = pkt.header::<Ip6Header>().ok_or(Error::TooShort)?.hop_limit();
        let at = message_at(pkt).filter(|at| *at >= Ip6Header::LEN).ok_or(Error::TooShort)?;
        let icmp = *pkt.header_at::<Icmp6Header>(at).ok_or(Error::TooShort)?;
        cx.trace(pkt, || Trace { icmp });
        let kind = icmp.kind();
        self.rx.add(cx.thread(), usize::from(kind.0), 1);
        let next = match kind {
            Icmp6Type::ECHO_REQUEST => Next::EchoRequest,
            kind => match self.takers.of(kind.0) {
                Some(taker) => Next::Taker(taker),
                // RFC 4443, 2.4 (a): errors of unknown types, too.
                None if kind == Icmp6Type::ECHO_REPLY || kind.is_error() => Next::Listener,
                None => return Err(Error::UnknownType),
            },
        };
        // The header of the type must lie in one piece with that of IPv6, as the nodes behind here read it.
        if pkt.segment_len() < at + shortest(kind) {
            return Err(Error::TooShort);
        }
        // RFC 4861, 6.1, 7.1 and 8.1: such a message never passed a router.
        if kind.is_neighbor_discovery() && hop_limit != 255 {
            return Err(Error::HopLimit);
        }
        if (kind.is_neighbor_discovery() || kind == Icmp6Type::ECHO_REQUEST) && icmp.code() != 0 {
            return Err(Error::Code);
        }
        Ok(next)
    }
}
