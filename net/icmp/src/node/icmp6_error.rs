//! `ip6-icmp-error`: turn a packet into the ICMPv6 error about it, if one may be sent. RFC 4443, 2.4 and 3.
//! any node that cannot send a packet on -> **ip6-icmp-error** -> ip6-lookup
//!
//! What to say lies in the packet's scratch ([`IcmpError`]).

use std::net::Ipv6Addr;
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, PacketNode};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_ip6::{IcmpError, Ip6IfTable};
use shoal_wire::icmp6::{self, may_answer, quotes_an_error};
use shoal_wire::ip6_ext::Ip6ExtHeaders;
use shoal_wire::{Icmp6Error, Icmp6Header, Icmp6Type, IntoBytes, Ip6Header, IpProtocol};

use super::icmp6_echo_request::HOP_LIMIT;
use crate::limiter::Limiter;
use crate::sum;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the sender, by the table its packet was looked up in.
    #[node("ip6-lookup")]
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
    /// packet too big response sent
    #[counter("packet_too_big_sent")]
    #[severity(info)]
    TooBig,
    /// packet is cut short
    TooShort,
    /// no error about an icmp error
    #[counter("about_error")]
    #[severity(info)]
    AboutIcmp,
    /// no error about a multicast, or to an address that is no host's
    #[counter("to_many")]
    #[severity(info)]
    NotOneHost,
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
    icmp: Icmp6Header,
    src: Ipv6Addr,
    dst: Ipv6Addr,
}

/// Says what went wrong.
pub(crate) struct Icmp6ErrorNode {
    pub(crate) interfaces: IfTable,
    pub(crate) addresses: Ip6IfTable,
    pub(crate) limiter: Arc<Limiter>,
    /// Sent messages by type.
    pub(crate) tx: Simple,
}

/// Whether an error may be sent about a packet at all. RFC 4443, 2.4 (e).
fn check(pkt: &Packet<'_>, ip: &Ip6Header, say: IcmpError) -> Result<(), Error> {
    let (kind, src, dst) = (Icmp6Type(say.kind), ip.src(), ip.dst());
    // (e.4): one sent to many by the link layer is as one to a group.
    let many = pkt.flags().has(Flags::LINK_MULTICAST);
    let dst = if many { shoal_wire::ip6_address::ALL_NODES } else { dst };
    if !may_answer(src, dst, kind, say.code) || src.is_loopback() {
        return Err(Error::NotOneHost);
    }
    let mut headers = Ip6ExtHeaders::of_packet(pkt.data()).ok_or(Error::TooShort)?;
    let (mut whole, mut later) = (true, false);
    for header in headers.by_ref() {
        whole &= header.is_ok();
        later |= header.is_ok_and(|h| h.fragment().is_some_and(|f| f.offset() != 0));
    }
    let icmp = headers.protocol() == IpProtocol::ICMP6;
    let message = pkt.data().get(headers.offset()..).unwrap_or_default();
    // (e.1) and (e.2). What the headers hide may be an error, too; but what is wrong with them must be told.
    let hidden = !whole && kind != Icmp6Type::PARAMETER_PROBLEM;
    if hidden || icmp && (later || quotes_an_error(message)) {
        return Err(Error::AboutIcmp);
    }
    Ok(())
}

impl Icmp6ErrorNode {
    /// Our address to speak from. RFC 4443, 2.2: the one the packet was sent to when it came as far as that, else one
    /// of the interface it came in by.
    fn source(
        &self,
        pkt: &Packet<'_>,
        ip: &Ip6Header,
        say: IcmpError,
        cx: &Cx<'_, Self>,
    ) -> Result<Ipv6Addr, Error> {
        if say.for_us != 0 && !ip.dst().is_multicast() {
            return Ok(ip.dst());
        }
        self.addresses.towards(ip.src(), pkt.rx(), cx.guard()).ok_or(Error::NoAddress)
    }

    /// Writes the two headers in front of the quoted packet.
    fn write(
        pkt: &mut Packet<'_>,
        say: IcmpError,
        src: Ipv6Addr,
        dst: Ipv6Addr,
    ) -> Result<Icmp6Header, Error> {
        // (c): as much of the packet as fits without the error exceeding the least MTU.
        let quote = pkt.len().min(Icmp6Error::MAX_QUOTE);
        pkt.truncate(quote).ok_or(Error::TooShort)?;
        pkt.push(Icmp6Error::LEN).ok_or(Error::NoHeadroom)?;
        let length = (Icmp6Error::LEN + quote) as u16;
        let mut icmp = Icmp6Header::new(Icmp6Type(say.kind), say.code);
        *pkt.header_mut::<[u8; Icmp6Error::LEN]>().ok_or(Error::TooShort)? = bytes(icmp, say.data);
        icmp.set_checksum(sum::onto(icmp6::sum(src, dst, u32::from(length)), pkt).finish());
        *pkt.header_mut::<Icmp6Header>().ok_or(Error::TooShort)? = icmp;
        pkt.push(Ip6Header::LEN).ok_or(Error::NoHeadroom)?;
        let ip = Ip6Header::new(src, dst, IpProtocol::ICMP6, HOP_LIMIT, length);
        *pkt.header_mut::<Ip6Header>().ok_or(Error::TooShort)? = ip;
        Ok(icmp)
    }
}

/// The first 8 bytes of an error; `data` is the word behind the checksum.
fn bytes(icmp: Icmp6Header, data: u32) -> [u8; Icmp6Error::LEN] {
    let mut bytes = [0; Icmp6Error::LEN];
    let all = icmp.as_bytes().iter().copied().chain(data.to_be_bytes());
    bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    bytes
}

/// Which counter an error that is sent goes to.
fn sent(kind: Icmp6Type) -> Error {
    match kind {
        Icmp6Type::TIME_EXCEEDED => Error::TimeExceeded,
        Icmp6Type::PARAMETER_PROBLEM => Error::ParameterProblem,
        Icmp6Type::PACKET_TOO_BIG => Error::TooBig,
        _ => Error::Unreachable,
    }
}

impl PacketNode for Icmp6ErrorNode {
    const NAME: &'static str = "ip6-icmp-error";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let say = *pkt.scratch::<IcmpError>();
        let ip = *pkt.header::<Ip6Header>().ok_or(Error::TooShort)?;
        check(pkt, &ip, say)?;
        let (src, dst) = (self.source(pkt, &ip, say, cx)?, ip.src());
        // (f)
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
            meta.tx = SwIfIndex(self.interfaces.get(rx, cx.guard()).fib_ip6);
        }
        self.tx.add(cx.thread(), usize::from(say.kind), 1);
        cx.count(sent(icmp.kind()), 1);
        Ok(Next::Lookup)
    }
}
