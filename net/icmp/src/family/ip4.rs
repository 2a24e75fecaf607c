//! ICMP of IPv4: RFC 792; RFC 1122, 3.2.2; RFC 1812, 4.3.2.

use std::fmt;
use std::net::Ipv4Addr;

use shoal_buffer::{Flags, Packet};
use shoal_infra::Guard;
use shoal_interface::{IfTable, SwIfIndex};
use shoal_ip4::{IcmpError, Ip4IfTable};
use shoal_wire::checksum::Sum;
use shoal_wire::icmp4::code;
use shoal_wire::{FromBytes, Icmp4Echo, Icmp4Error, Icmp4Header, Icmp4Type, Ip4Header, IpProtocol};

use super::{ErrorFields, Family, HEAD, Ip4, NotAbout, QuotedEcho};
use crate::address::{is_host, is_many};
use crate::echo_answers::Answer;
use crate::node::error::Error;

/// TTL of errors: a receiver sees how far their source is, as with VPP.
const ERROR_TTL: u8 = 255;

/// The echo request an error at byte `at` quotes.
fn quoted(pkt: &Packet<'_>, at: usize) -> Option<Icmp4Echo> {
    let quote = pkt.data().get(at + Icmp4Error::LEN..)?;
    let (ip, _) = Ip4Header::ref_from_prefix(quote).ok()?;
    let header = ip.header_len();
    let whole = ip.version() == 4 && header >= Ip4Header::LEN && ip.fragment_offset() == 0;
    if !whole || ip.protocol() != IpProtocol::ICMP {
        return None;
    }
    let (echo, _) = Icmp4Echo::read_from_prefix(quote.get(header..)?).ok()?;
    (echo.header.kind() == Icmp4Type::ECHO_REQUEST).then_some(echo)
}

impl Family for Ip4 {
    const ERROR: &'static str = "ip4-icmp-error";
    const LISTENER: &'static str = "ip4-icmp-listener";
    const PUNT: &'static str = "ip4-punt";
    const LOOKUP: &'static [&'static str] = &["ip4-lookup"];
    // RFC 1812, 4.3.2.3: as much of the packet as fits without the error exceeding 576 bytes.
    const QUOTE: usize = 576 - Ip4Header::LEN - HEAD;

    type Forwarding = shoal_ip4::Ip4Family;
    type Address = Ipv4Addr;
    type Addresses = Ip4IfTable;

    fn say(pkt: &mut Packet<'_>) -> ErrorFields {
        let IcmpError { kind, code, data, .. } = *pkt.scratch::<IcmpError>();
        let for_us = kind == Icmp4Type::DESTINATION_UNREACHABLE.0
            && matches!(code, code::PORT_UNREACHABLE | code::PROTOCOL_UNREACHABLE);
        ErrorFields { kind, code, data, for_us }
    }

    fn asker(pkt: &Packet<'_>, _: ErrorFields) -> Result<Ipv4Addr, Error> {
        let ip = pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
        // RFC 1812, 4.3.2.7: not about what was sent to many by the link layer or by its address, not about a fragment
        // but the first, not to an address that is not one host's, not about an error.
        if pkt.flags().has(Flags::LINK_MULTICAST) || is_many(ip.dst()) {
            return Err(Error::ToMany);
        }
        if ip.fragment_offset() != 0 {
            return Err(Error::LaterFragment);
        }
        if !is_host(ip.src()) {
            return Err(Error::BadSource);
        }
        if ip.protocol() == IpProtocol::ICMP {
            // A message too short to have a type may be an error, too.
            let icmp = pkt.header_at::<Icmp4Header>(ip.header_len().max(Ip4Header::LEN));
            if icmp.is_none_or(|icmp| icmp.kind().is_error()) {
                return Err(Error::AboutIcmp);
            }
        }
        Ok(ip.src())
    }

    /// The one the packet was sent to when it came as far as that (RFC 1122, 3.2.1.3), else the first of the interface it
    /// came in by (RFC 1812, 4.3.2.4).
    fn source(
        addresses: &Ip4IfTable,
        pkt: &Packet<'_>,
        say: ErrorFields,
        guard: Guard<'_>,
    ) -> Option<Ipv4Addr> {
        if say.for_us {
            return Some(pkt.header::<Ip4Header>()?.dst());
        }
        match addresses.primary(pkt.rx(), guard) {
            0 => None,
            address => Some(address.into()),
        }
    }

    fn sum(_: Ipv4Addr, _: Ipv4Addr, _: u16) -> Sum {
        Sum::new()
    }

    fn push_header(pkt: &mut Packet<'_>, src: Ipv4Addr, dst: Ipv4Addr, len: u16) -> Option<()> {
        pkt.push(Ip4Header::LEN)?;
        let ip = Ip4Header::new(src, dst, IpProtocol::ICMP, ERROR_TTL, Ip4Header::LEN as u16 + len);
        *pkt.header_mut::<Ip4Header>()? = ip;
        Some(())
    }

    fn table(interfaces: &IfTable, interface: SwIfIndex, guard: Guard<'_>) -> u32 {
        interfaces.get(interface, guard).fib_ip4
    }

    fn sent(kind: u8) -> Error {
        match Icmp4Type(kind) {
            Icmp4Type::TIME_EXCEEDED => Error::TimeExceeded,
            Icmp4Type::PARAMETER_PROBLEM => Error::ParameterProblem,
            Icmp4Type::REDIRECT => Error::Redirect,
            _ => Error::Unreachable,
        }
    }

    fn describe(head: [u8; HEAD], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Icmp4Header::ref_from_prefix(&head).map_or(Ok(()), |(icmp, _)| fmt::Display::fmt(icmp, f))
    }

    fn heard(pkt: &Packet<'_>) -> Result<(Ipv4Addr, QuotedEcho), NotAbout> {
        let ip = pkt.header::<Ip4Header>().ok_or(NotAbout::TooShort)?;
        let at = ip.header_len();
        let icmp = pkt.header_at::<Icmp4Header>(at).ok_or(NotAbout::TooShort)?;
        let (echo, answer) = if icmp.kind() == Icmp4Type::ECHO_REPLY {
            (*pkt.header_at::<Icmp4Echo>(at).ok_or(NotAbout::Reply)?, Answer::Reply)
        } else {
            (quoted(pkt, at).ok_or(NotAbout::Error)?, Answer::Icmp4(icmp.kind(), icmp.code()))
        };
        let (id, sequence, bytes) = (echo.id(), echo.sequence(), pkt.len().saturating_sub(at));
        Ok((ip.src(), QuotedEcho { id, sequence, answer, ttl: ip.ttl(), bytes }))
    }
}
