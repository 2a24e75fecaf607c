//! `ip6-icmp-path-mtu`: learn from "packet too big" about packets of this router. RFC 8201, 4; RFC 4443, 3.2.
//! ip6-icmp-input -> **ip6-icmp-path-mtu** -> drop; what was learnt goes to the control plane

use std::net::{IpAddr, Ipv6Addr};

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::FibIndex;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::{FromBytes, Icmp6Error, Ip6Header};

use super::{ErrorReader, Fact};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has been understood.
    #[node("drop")]
    Done,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// path mtus heard of
    #[severity(info)]
    Heard,
    /// path mtus are not learnt
    #[severity(info)]
    Off,
    /// quoted packet is cut short or no ip6
    #[severity(warn)]
    Quote,
    /// quoted packet was not sent from here
    #[severity(warn)]
    NotOurs,
    /// mtu is less than all links carry
    #[severity(warn)]
    TooSmall,
    /// mtu is no less than the quoted packet
    #[severity(warn)]
    NotTooBig,
    /// too many at a time
    #[severity(warn)]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("to {peer} mtu {mtu}")]
pub(crate) struct Trace {
    peer: Ipv6Addr,
    mtu: u16,
}

/// Learns.
pub(crate) struct Ip6TooBig(pub(crate) ErrorReader);

/// The host and the size that the error reports.
fn said(pkt: &Packet<'_>) -> Result<(Ipv6Addr, u16), Error> {
    let ip = pkt.header::<Ip6Header>().ok_or(Error::Quote)?;
    let at =
        usize::try_from(i32::from(pkt.meta().l4) - i32::from(pkt.current())).map_err(|_| Error::Quote)?;
    let mtu = pkt.header_at::<Icmp6Error>(at).ok_or(Error::Quote)?.mtu();
    let quote = pkt.data().get(at + Icmp6Error::LEN..).ok_or(Error::Quote)?;
    let (quoted, _) = Ip6Header::ref_from_prefix(quote).map_err(|_| Error::Quote)?;
    if quoted.version() != 6 {
        return Err(Error::Quote);
    }
    // The error went to an address of this router; a forger must still know which host we speak to.
    if quoted.src() != ip.dst() {
        return Err(Error::NotOurs);
    }
    // RFC 8201, 4: less than what all links carry is not believed.
    if mtu < Ip6Header::MIN_MTU as u32 {
        return Err(Error::TooSmall);
    }
    let length = Ip6Header::LEN as u32 + u32::from(quoted.payload_length());
    let mtu = u16::try_from(mtu).ok().filter(|mtu| u32::from(*mtu) < length).ok_or(Error::NotTooBig)?;
    Ok((quoted.dst(), mtu))
}

impl PacketNode for Ip6TooBig {
    const NAME: &'static str = "ip6-icmp-path-mtu";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        self.0.wanted.least().ok_or(Error::Off)?;
        let (peer, mtu) = said(pkt)?;
        cx.trace(pkt, || Trace { peer, mtu });
        let fib = FibIndex(self.0.interfaces.ip6_table(pkt.rx()));
        let fact = Fact { fib, peer: IpAddr::V6(peer), mtu };
        if !self.0.limiter.take(cx.now()) || self.0.tell.try_send(fact).is_err() {
            return Err(Error::Congested);
        }
        cx.count(Error::Heard, 1);
        Ok(Next::Done)
    }
}
