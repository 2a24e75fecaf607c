//! `ip4-icmp-echo-request`: turn a request into its reply, where it lies. RFC 1122, 3.2.2.6.
//! ip4-icmp-input -> **ip4-icmp-echo-request** -> ip4-lookup

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::checksum::update_u16;
use shoal_wire::{FromBytes, Icmp4Echo, Icmp4Type, Ip4Header};

use crate::address::{is_host, is_many};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Back, by the table the request was looked up in.
    #[node("ip4-lookup")]
    Lookup,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// echo replies sent
    #[counter("echo_replies_sent")]
    #[severity(info)]
    Sent,
    /// payload length too small for type
    TooShort,
    /// echo request to a broadcast or multicast address
    ToMany,
    /// echo request from an unanswerable address
    BadSource,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{reply}")]
pub struct Trace {
    reply: Icmp4Echo,
}

/// TTL of what this router sends (RFC 1700).
pub(crate) const TTL: u8 = 64;

/// Echoes.
pub(crate) struct EchoRequest {
    /// Sent messages by type.
    pub(crate) tx: Simple,
}

/// Sends a header back to where it came from. The sum of the two addresses stays what it was.
fn turn_round(ip: &mut Ip4Header) {
    let (src, dst) = (ip.src(), ip.dst());
    ip.set_src(dst);
    ip.set_dst(src);
    let protocol = ip.protocol().0;
    let word = |ttl| u16::from_be_bytes([ttl, protocol]);
    ip.set_checksum(update_u16(ip.checksum(), word(ip.ttl()), word(TTL)));
    ip.set_ttl(TTL);
}

impl PacketNode for EchoRequest {
    const NAME: &'static str = "ip4-icmp-echo-request";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let many = pkt.flags().has(Flags::LINK_MULTICAST);
        let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
        // RFC 1122, 3.2.2.6 allows silence, and a network that answers as one is a weapon.
        if many || is_many(ip.dst()) {
            return Err(Error::ToMany);
        }
        if !is_host(ip.src()) {
            return Err(Error::BadSource);
        }
        let header = ip.header_len();
        turn_round(ip);
        let message = pkt.data_mut().get_mut(header..).ok_or(Error::TooShort)?;
        let (echo, _) = Icmp4Echo::mut_from_prefix(message).map_err(|_| Error::TooShort)?;
        echo.header.rewrite_kind(Icmp4Type::ECHO_REPLY);
        let reply = *echo;
        cx.trace(pkt, || Trace { reply });
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        self.tx.add(cx.thread(), usize::from(Icmp4Type::ECHO_REPLY.0), 1);
        cx.count(Error::Sent, 1);
        Ok(Next::Lookup)
    }
}
