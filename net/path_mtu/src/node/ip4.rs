//! `ip4-icmp-path-mtu`: learn from "fragmentation needed" about packets of this router. RFC 1191, 4 to 7.
//! ip4-icmp-input -> **ip4-icmp-path-mtu** -> ip4-icmp-listener; what was learnt goes to the control plane

use std::net::{IpAddr, Ipv4Addr};

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::FibIndex;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::{FromBytes, Icmp4Error, Ip4Header};

use super::{ErrorReader, Fact};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The node that waits for errors, as all others do.
    #[node("ip4-icmp-listener")]
    Listener,
}

/// What is counted; no packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// path mtus heard of
    #[severity(info)]
    Heard,
    /// quoted packet is cut short or no ip4
    #[severity(warn)]
    Quote,
    /// quoted packet was not sent from here
    #[severity(warn)]
    NotOurs,
    /// quoted packet might have been cut
    #[severity(warn)]
    MayBeCut,
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
    peer: Ipv4Addr,
    mtu: u16,
}

/// Learns.
pub(crate) struct Ip4TooBig(pub(crate) ErrorReader);

/// RFC 1191, 7.1: what paths carry that are told by a router which does not say how much; the first below the packet.
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68];

/// The host and the size that the error reports.
fn said(pkt: &Packet<'_>, least: u16) -> Result<(Ipv4Addr, u16), Error> {
    let ip = pkt.header::<Ip4Header>().ok_or(Error::Quote)?;
    let error = pkt.header_at::<Icmp4Error>(ip.header_len()).ok_or(Error::Quote)?;
    let quote = pkt.data().get(ip.header_len() + Icmp4Error::LEN..).ok_or(Error::Quote)?;
    let (quoted, _) = Ip4Header::ref_from_prefix(quote).map_err(|_| Error::Quote)?;
    let length = quoted.total_length();
    if quoted.version() != 4 || quoted.header_len() < Ip4Header::LEN {
        return Err(Error::Quote);
    }
    // The error went to an address of this router; a forger must still know which host we speak to.
    if quoted.src() != ip.dst() {
        return Err(Error::NotOurs);
    }
    // RFC 1191, 3: only packets that may not be cut meet this error.
    if !quoted.dont_fragment() {
        return Err(Error::MayBeCut);
    }
    let plateau = || PLATEAUS.into_iter().find(|plateau| *plateau < length).unwrap_or(least);
    let mtu = match error.mtu() {
        0 => plateau(),
        mtu => mtu,
    };
    let mtu = mtu.max(least);
    if mtu < length { Ok((quoted.dst(), mtu)) } else { Err(Error::NotTooBig) }
}

impl PacketNode for Ip4TooBig {
    const NAME: &'static str = "ip4-icmp-path-mtu";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let Some(least) = self.0.wanted.least() else { return Ok(Next::Listener) };
        let what = match said(pkt, least) {
            Err(why) => why,
            Ok((peer, mtu)) => {
                cx.trace(pkt, || Trace { peer, mtu });
                let fib = FibIndex(self.0.interfaces.ip4_table(pkt.rx()));
                let fact = Fact { fib, peer: IpAddr::V4(peer), mtu };
                let told = self.0.limiter.take(cx.now()) && self.0.tell.try_send(fact).is_ok();
                if told { Error::Heard } else { Error::Congested }
            }
        };
        cx.count(what, 1);
        Ok(Next::Listener)
    }
}
