//! ICMP of IPv6: RFC 4443.

use std::fmt;
use std::net::Ipv6Addr;

use shoal_buffer::{Flags, Packet};
use shoal_infra::Guard;
use shoal_interface::{IfTable, SwIfIndex};
use shoal_ip6::{IcmpError, Ip6IfTable};
use shoal_wire::checksum::Sum;
use shoal_wire::icmp6::{self, may_answer, quotes_an_error};
use shoal_wire::ip6_ext::Ip6ExtHeaders;
use shoal_wire::{FromBytes, Icmp6Echo, Icmp6Error, Icmp6Header, Icmp6Type, Ip6Header, IpProtocol};

use super::{ErrorFields, Family, HEAD, Ip6, NotAbout, QuotedEcho};
use crate::echo_answers::Answer;
use crate::node::error::Error;
use crate::node::icmp6_input::message_at;

/// Hop limit of errors, as with VPP.
const ERROR_HOP_LIMIT: u8 = 255;

/// The echo request an error at byte `at` quotes.
fn quoted(pkt: &Packet<'_>, at: usize) -> Option<Icmp6Echo> {
    let quote = pkt.data().get(at + Icmp6Error::LEN..)?;
    let (ip, _) = Ip6Header::ref_from_prefix(quote).ok()?;
    let mut headers = Ip6ExtHeaders::of_packet(quote).filter(|_| ip.version() == 6)?;
    let first = |h: &shoal_wire::ip6_ext::Ip6ExtHeader<'_>| h.fragment().is_none_or(|f| f.offset() == 0);
    let whole = headers.by_ref().all(|header| header.is_ok_and(|h| first(&h)));
    if !whole || headers.protocol() != IpProtocol::ICMP6 {
        return None;
    }
    let (echo, _) = Icmp6Echo::read_from_prefix(quote.get(headers.offset()..)?).ok()?;
    (echo.header.kind() == Icmp6Type::ECHO_REQUEST).then_some(echo)
}

impl Family for Ip6 {
    const ERROR: &'static str = "ip6-icmp-error";
    const LISTENER: &'static str = "ip6-icmp-listener";
    const PUNT: &'static str = "ip6-punt";
    const LOOKUP: &'static [&'static str] = &["ip6-lookup"];
    // RFC 4443, 2.4 (c): as much of the packet as fits without the error exceeding the least MTU.
    const QUOTE: usize = Icmp6Error::MAX_QUOTE;

    type Forwarding = shoal_ip6::Ip6Family;
    type Address = Ipv6Addr;
    type Addresses = Ip6IfTable;

    fn say(pkt: &mut Packet<'_>) -> ErrorFields {
        let IcmpError { kind, code, data, for_us } = *pkt.scratch::<IcmpError>();
        ErrorFields { kind, code, data, for_us: for_us != 0 }
    }

    fn asker(pkt: &Packet<'_>, say: ErrorFields) -> Result<Ipv6Addr, Error> {
        let ip = pkt.header::<Ip6Header>().ok_or(Error::TooShort)?;
        let (kind, src) = (Icmp6Type(say.kind), ip.src());
        // RFC 4443, 2.4 (e.6).
        if src.is_unspecified() || src.is_multicast() || src.is_loopback() {
            return Err(Error::BadSource);
        }
        // (e.3) and (e.5); (e.4): one sent to many by the link layer is as one to a group.
        let many = pkt.flags().has(Flags::LINK_MULTICAST);
        let dst = if many { shoal_wire::ip6_address::ALL_NODES } else { ip.dst() };
        if !may_answer(src, dst, kind, say.code) {
            return Err(Error::ToMany);
        }
        let mut headers = Ip6ExtHeaders::of_packet(pkt.data()).ok_or(Error::TooShort)?;
        let (mut whole, mut later) = (true, false);
        for header in headers.by_ref() {
            whole &= header.is_ok();
            later |= header.is_ok_and(|h| h.fragment().is_some_and(|f| f.offset() != 0));
        }
        let icmp = headers.protocol() == IpProtocol::ICMP6;
        let message = pkt.data().get(headers.offset()..).unwrap_or_default();
        // (e.1) and (e.2). What the headers hide may be an error, too; but what is wrong with them must be reported.
        let hidden = !whole && kind != Icmp6Type::PARAMETER_PROBLEM;
        if hidden || icmp && (later || quotes_an_error(message)) {
            return Err(Error::AboutIcmp);
        }
        Ok(src)
    }

    /// RFC 4443, 2.2: the one the packet was sent to when it came as far as that, else one of the interface it came in by.
    fn source(
        addresses: &Ip6IfTable,
        pkt: &Packet<'_>,
        say: ErrorFields,
        guard: Guard<'_>,
    ) -> Option<Ipv6Addr> {
        let ip = pkt.header::<Ip6Header>()?;
        if say.for_us && !ip.dst().is_multicast() {
            return Some(ip.dst());
        }
        addresses.towards(ip.src(), pkt.rx(), guard)
    }

    fn sum(src: Ipv6Addr, dst: Ipv6Addr, len: u16) -> Sum {
        icmp6::sum(src, dst, len.into())
    }

    fn push_header(pkt: &mut Packet<'_>, src: Ipv6Addr, dst: Ipv6Addr, len: u16) -> Option<()> {
        pkt.push(Ip6Header::LEN)?;
        *pkt.header_mut::<Ip6Header>()? = Ip6Header::new(src, dst, IpProtocol::ICMP6, ERROR_HOP_LIMIT, len);
        Some(())
    }

    fn table(interfaces: &IfTable, interface: SwIfIndex, guard: Guard<'_>) -> u32 {
        interfaces.get(interface, guard).fib_ip6
    }

    fn sent(kind: u8) -> Error {
        match Icmp6Type(kind) {
            Icmp6Type::TIME_EXCEEDED => Error::TimeExceeded,
            Icmp6Type::PARAMETER_PROBLEM => Error::ParameterProblem,
            Icmp6Type::PACKET_TOO_BIG => Error::TooBig,
            _ => Error::Unreachable,
        }
    }

    fn describe(head: [u8; HEAD], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Icmp6Header::ref_from_prefix(&head).map_or(Ok(()), |(icmp, _)| fmt::Display::fmt(icmp, f))
    }

    fn heard(pkt: &Packet<'_>) -> Result<(Ipv6Addr, QuotedEcho), NotAbout> {
        let ip = pkt.header::<Ip6Header>().ok_or(NotAbout::TooShort)?;
        let at = message_at(pkt).filter(|at| *at >= Ip6Header::LEN).ok_or(NotAbout::TooShort)?;
        let icmp = pkt.header_at::<Icmp6Header>(at).ok_or(NotAbout::TooShort)?;
        let (echo, answer) = if icmp.kind() == Icmp6Type::ECHO_REPLY {
            (*pkt.header_at::<Icmp6Echo>(at).ok_or(NotAbout::Reply)?, Answer::Reply)
        } else {
            (quoted(pkt, at).ok_or(NotAbout::Error)?, Answer::Icmp6(icmp.kind(), icmp.code()))
        };
        let (id, sequence, bytes) = (echo.id(), echo.sequence(), pkt.len().saturating_sub(at));
        Ok((ip.src(), QuotedEcho { id, sequence, answer, ttl: ip.hop_limit(), bytes }))
    }
}
