//! `ip6-icmp-echo-request`: turn a request into its reply, where it lies. RFC 4443, 4.2.
//! ip6-icmp-input -> **ip6-icmp-echo-request** -> ip6-lookup

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::counter::Simple;
use shoal_graph::{Cx, PacketNode};
use shoal_ip6::Ip6IfTable;
use shoal_wire::{Icmp6Echo, Icmp6Type, Ip6Header, IpProtocol, icmp6};

use super::icmp6_input::message_at;
use crate::sum;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Back, by the table the request was looked up in.
    #[node("ip6-lookup")]
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
    /// echo request from an unanswerable address
    BadSource,
    /// no address to send a reply from
    NoAddress,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{reply}")]
pub struct Trace {
    reply: Icmp6Echo,
}

/// Hop limit of what this router sends (RFC 1700).
pub(crate) const HOP_LIMIT: u8 = 64;

/// Echoes.
pub(crate) struct Echo6Request {
    pub(crate) addresses: Ip6IfTable,
    /// Sent messages by type.
    pub(crate) tx: Simple,
}

impl PacketNode for Echo6Request {
    const NAME: &'static str = "ip6-icmp-echo-request";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let mut ip = *pkt.header::<Ip6Header>().ok_or(Error::TooShort)?;
        let at = message_at(pkt).filter(|at| *at >= Ip6Header::LEN).ok_or(Error::TooShort)?;
        let (asker, asked) = (ip.src(), ip.dst());
        if asker.is_multicast() || asker.is_unspecified() || asker.is_loopback() {
            return Err(Error::BadSource);
        }
        let mut reply = *pkt.header_at::<Icmp6Echo>(at).ok_or(Error::TooShort)?;
        let own = if asked.is_multicast() {
            // RFC 4443, 4.2: a group is answered for from a unicast address.
            self.addresses.towards(asker, pkt.rx(), cx.guard()).ok_or(Error::NoAddress)?
        } else {
            asked
        };
        // Extension headers were for the way here.
        pkt.pull(at).ok_or(Error::TooShort)?;
        let length = u16::try_from(pkt.len()).map_err(|_| Error::TooShort)?;
        reply.header.rewrite_kind(Icmp6Type::ECHO_REPLY);
        if own != asked {
            reply.header.set_checksum(0);
        }
        *pkt.header_mut::<Icmp6Echo>().ok_or(Error::TooShort)? = reply;
        if own != asked {
            let sum = sum::onto(icmp6::sum(own, asker, u32::from(length)), pkt);
            reply.header.set_checksum(sum.finish());
            *pkt.header_mut::<Icmp6Echo>().ok_or(Error::TooShort)? = reply;
        }
        cx.trace(pkt, || Trace { reply });
        let meta = pkt.meta_mut();
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED).without(Flags::LINK_MULTICAST);
        ip.set_src(own);
        ip.set_dst(asker);
        ip.set_protocol(IpProtocol::ICMP6);
        ip.set_hop_limit(HOP_LIMIT);
        ip.set_payload_length(length);
        pkt.push(Ip6Header::LEN).ok_or(Error::TooShort)?;
        *pkt.header_mut::<Ip6Header>().ok_or(Error::TooShort)? = ip;
        self.tx.add(cx.thread(), usize::from(Icmp6Type::ECHO_REPLY.0), 1);
        cx.count(Error::Sent, 1);
        Ok(Next::Lookup)
    }
}
