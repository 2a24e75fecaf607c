//! `ip4-icmp-listener`: echo replies and errors, to whoever sent the request they are about. RFC 792.
//! ip4-icmp-input -> **ip4-icmp-listener** -> drop; what was heard goes to the control plane

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::{FromBytes, Icmp4Echo, Icmp4Error, Icmp4Header, Icmp4Type, Ip4Header, IpProtocol};

use crate::heard::{Heard, Wanted};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has been understood.
    #[node("drop")]
    Done,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// echo replies received
    #[severity(info)]
    Replies,
    /// icmp errors about echo requests of this router
    #[severity(info)]
    Errors,
    /// echo reply nobody waits for
    #[severity(warn)]
    UnexpectedReply,
    /// icmp error about nothing this router waits for
    #[counter("unexpected_error")]
    #[severity(warn)]
    AboutStranger,
    /// payload length too small for type
    TooShort,
    /// echo replies not handed over, too many at a time
    #[severity(warn)]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("about echo request id {id} seq {sequence}")]
pub struct Trace {
    id: u16,
    sequence: u16,
}

/// Knows who waits.
pub(crate) struct ListenerNode {
    pub(crate) wanted: Wanted,
    pub(crate) heard: Sender<Heard>,
}

/// The echo header at byte `at`.
fn echo_at(pkt: &Packet<'_>, at: usize) -> Option<Icmp4Echo> {
    pkt.header_at::<Icmp4Echo>(at).copied()
}

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

impl PacketNode for ListenerNode {
    const NAME: &'static str = "ip4-icmp-listener";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let ip = *pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
        let at = ip.header_len();
        let icmp = *pkt.header_at::<Icmp4Header>(at).ok_or(Error::TooShort)?;
        let is_reply = icmp.kind() == Icmp4Type::ECHO_REPLY;
        let (about, unexpected, expected) = if is_reply {
            (echo_at(pkt, at), Error::UnexpectedReply, Error::Replies)
        } else {
            (quoted(pkt, at), Error::AboutStranger, Error::Errors)
        };
        let echo = about.filter(|echo| self.wanted.has(echo.id())).ok_or(unexpected)?;
        let (id, sequence) = (echo.id(), echo.sequence());
        cx.trace(pkt, || Trace { id, sequence });
        let heard = Heard {
            id,
            sequence,
            kind: icmp.kind(),
            code: icmp.code(),
            from: ip.src(),
            ttl: ip.ttl(),
            bytes: pkt.len().saturating_sub(at),
            at: cx.now(),
        };
        match self.heard.try_send(heard) {
            Ok(()) => {
                cx.count(expected, 1);
                Ok(Next::Done)
            }
            Err(_) => Err(Error::Congested),
        }
    }
}
