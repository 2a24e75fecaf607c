//! `ip4-icmp-error`: turn a packet into the ICMP error about it, if one may be sent. RFC 792; RFC 1122, 3.2.2;
//! RFC 1812, 4.3.2.
//! any node that cannot send a packet on -> **ip4-icmp-error** -> ip4-lookup
//!
//! What to say lies in the packet's scratch ([`IcmpError`]).

use std::net::Ipv4Addr;
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, PacketNode};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_ip4::{IcmpError, Ip4IfTable};
use shoal_wire::icmp4::code;
use shoal_wire::{Icmp4Header, Icmp4Type, Ip4Header, IpProtocol};

use super::echo_request::TTL;
use crate::address::{is_host, is_many};
use crate::limiter::Limiter;
use crate::sum;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the sender, by the table its packet was looked up in.
    #[node("ip4-lookup")]
    Lookup,
}

/// Why nothing is said about a packet, and what else is counted. Texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// destination unreachable response sent
    #[counter("dest_unreach_sent")]
    #[severity(info)]
    Unreachable,
    /// hop limit exceeded response sent
    #[counter("ttl_expire_sent")]
    #[severity(info)]
    TimeExceeded,
    /// parameter problem response sent
    #[counter("param_problem_sent")]
    #[severity(info)]
    ParameterProblem,
    /// redirect sent
    #[severity(info)]
    Redirect,
    /// packet is cut short
    TooShort,
    /// no error about an icmp error
    #[counter("about_error")]
    #[severity(info)]
    AboutIcmp,
    /// no error about a later fragment
    #[severity(info)]
    LaterFragment,
    /// no error about a broadcast or multicast
    #[severity(info)]
    ToMany,
    /// no error to an address that is no host's
    #[severity(info)]
    BadSource,
    /// no address to send an error from
    NoAddress,
    /// error not sent, rate limit reached
    #[severity(warn)]
    RateLimited,
    /// no headroom for the error's headers
    NoHeadroom,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{icmp} {src} -> {dst}")]
pub struct Trace {
    icmp: Icmp4Header,
    src: Ipv4Addr,
    dst: Ipv4Addr,
}

/// RFC 1812, 4.3.2.3: as much of the packet as fits without the error exceeding 576 bytes.
const QUOTE: usize = 576 - Ip4Header::LEN - ICMP;
/// Bytes of ICMP before the quoted packet.
const ICMP: usize = 8;
/// RFC 1812, 4.3.2.5: precedence 6, internetwork control.
const TOS: u8 = 0xc0;

/// Says what went wrong.
pub(crate) struct IcmpErrorNode {
    pub(crate) interfaces: IfTable,
    pub(crate) addresses: Ip4IfTable,
    pub(crate) limiter: Arc<Limiter>,
    /// Sent messages by type.
    pub(crate) tx: Simple,
}

/// Whether an error may be sent about a packet at all. RFC 1122, 3.2.2.
fn check(pkt: &Packet<'_>, ip: &Ip4Header) -> Result<(), Error> {
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
    Ok(())
}

impl IcmpErrorNode {
    /// Our address to speak from: the one the packet was sent to when it came as far as that (RFC 1122, 3.2.1.3),
    /// else the first of the interface it came in by (RFC 1812, 4.3.2.4).
    fn source(
        &self,
        pkt: &Packet<'_>,
        ip: &Ip4Header,
        say: IcmpError,
        cx: &Cx<'_, Self>,
    ) -> Result<Ipv4Addr, Error> {
        let for_us = say.kind == Icmp4Type::DESTINATION_UNREACHABLE.0
            && matches!(say.code, code::PORT_UNREACHABLE | code::PROTOCOL_UNREACHABLE);
        if for_us {
            return Ok(ip.dst());
        }
        match self.addresses.primary(pkt.rx(), cx.guard()) {
            0 => Err(Error::NoAddress),
            address => Ok(address.into()),
        }
    }

    /// Writes the two headers in front of the quoted packet.
    fn write(
        pkt: &mut Packet<'_>,
        say: IcmpError,
        src: Ipv4Addr,
        dst: Ipv4Addr,
    ) -> Result<Icmp4Header, Error> {
        let quote = pkt.len().min(QUOTE);
        pkt.truncate(quote).ok_or(Error::TooShort)?;
        pkt.push(ICMP).ok_or(Error::NoHeadroom)?;
        let mut icmp = Icmp4Header::new(Icmp4Type(say.kind), say.code);
        *pkt.header_mut::<[u8; ICMP]>().ok_or(Error::TooShort)? = bytes(icmp, say.data);
        icmp.set_checksum(sum::of(pkt, 0).finish());
        *pkt.header_mut::<Icmp4Header>().ok_or(Error::TooShort)? = icmp;
        pkt.push(Ip4Header::LEN).ok_or(Error::NoHeadroom)?;
        let total = (Ip4Header::LEN + ICMP + quote) as u16;
        let mut ip = Ip4Header::new(src, dst, IpProtocol::ICMP, TTL, total);
        ip.rewrite_tos(TOS);
        *pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)? = ip;
        Ok(icmp)
    }
}

/// The first 8 bytes of an error; `data` is the word behind the checksum.
fn bytes(icmp: Icmp4Header, data: u32) -> [u8; ICMP] {
    let [a, b, c, d] = data.to_be_bytes();
    [icmp.kind().0, icmp.code(), 0, 0, a, b, c, d]
}

/// Which counter an error that is sent goes to.
fn sent(kind: Icmp4Type) -> Error {
    match kind {
        Icmp4Type::TIME_EXCEEDED => Error::TimeExceeded,
        Icmp4Type::PARAMETER_PROBLEM => Error::ParameterProblem,
        Icmp4Type::REDIRECT => Error::Redirect,
        _ => Error::Unreachable,
    }
}

impl PacketNode for IcmpErrorNode {
    const NAME: &'static str = "ip4-icmp-error";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let say = *pkt.scratch::<IcmpError>();
        let ip = *pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
        check(pkt, &ip)?;
        let (src, dst) = (self.source(pkt, &ip, say, cx)?, ip.src());
        if !self.limiter.take(cx.now()) {
            return Err(Error::RateLimited);
        }
        let icmp = Self::write(pkt, say, src, dst)?;
        cx.trace(pkt, || Trace { icmp, src, dst });
        let (front, rx) = (pkt.current(), pkt.rx());
        let traced = pkt.flags().has(Flags::TRACED);
        let meta = pkt.meta_mut();
        // Offloads and the like were the old packet's.
        meta.flags =
            if traced { Flags::LOCALLY_ORIGINATED.with(Flags::TRACED) } else { Flags::LOCALLY_ORIGINATED };
        meta.l3 = front;
        if meta.tx == SwIfIndex::NONE {
            meta.tx = SwIfIndex(self.interfaces.get(rx, cx.guard()).fib_ip4);
        }
        self.tx.add(cx.thread(), usize::from(say.kind), 1);
        cx.count(sent(icmp.kind()), 1);
        Ok(Next::Lookup)
    }
}
