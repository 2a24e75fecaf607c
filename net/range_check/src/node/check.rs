//! `ip4-source-and-port-range-check-rx`, `-tx`: may this host speak to that port?
//! ip4-input | ip4-rewrite -> **ip4-source-and-port-range-check-rx** -> the next feature | error-drop

use std::net::Ipv4Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_wire::{Ip4Header, IpProtocol, Transport};

use crate::ranges::{Ranges, Verdict};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next feature.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// ip4 source and port range check bad packets
    #[counter("check_fail")]
    CheckFail,
    /// ip4 source and port range check good packets
    #[counter("check_ok")]
    #[severity(info)]
    CheckOk,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("src ip {src} {protocol} dst port {port}: {verdict}")]
pub(crate) struct Trace {
    src: Ipv4Addr,
    protocol: &'static str,
    port: u16,
    verdict: &'static str,
}

/// Checks packets received, or those about to be sent.
pub(crate) struct Check<const TX: bool> {
    ranges: Ranges,
}

/// What is looked at of a packet: protocol, source, destination port.
type Facts = (IpProtocol, Ipv4Addr, Option<u16>);

impl<const TX: bool> Check<TX> {
    pub(crate) fn new(ranges: Ranges) -> Self {
        Check { ranges }
    }

    /// `None` when there is nothing to check: a later fragment, which has no ports.
    fn facts(pkt: &Packet<'_>) -> Result<Option<Facts>, Error> {
        // On the way out the link's header is in front already.
        let at = if TX { i32::from(pkt.meta().l3) - i32::from(pkt.current()) } else { 0 };
        let at = usize::try_from(at).map_err(|_| Error::CheckFail)?;
        let ip = pkt.header_at::<Ip4Header>(at).ok_or(Error::CheckFail)?;
        let source = ip.src();
        let packet = pkt.data().get(at..).unwrap_or_default();
        let transport = Transport::of_ip4(packet).ok_or(Error::CheckFail)?;
        if !transport.there {
            return Ok(None);
        }
        let port = packet.get(transport.offset + 2..).and_then(|rest| rest.first_chunk::<2>());
        Ok(Some((transport.protocol, source, port.map(|port| u16::from_be_bytes(*port)))))
    }
}

impl<const TX: bool> PacketNode for Check<TX> {
    const NAME: &'static str = if TX { super::TX } else { super::RX };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = if TX { pkt.tx() } else { pkt.rx() };
        if let Some(facts) = Self::facts(pkt)? {
            let verdict = self.ranges.verdict::<TX>(interface, facts, cx.guard());
            cx.trace(pkt, || Trace {
                src: facts.1,
                protocol: if facts.0 == IpProtocol::TCP { "TCP" } else { "UDP" },
                port: facts.2.unwrap_or_default(),
                verdict: match verdict {
                    Verdict::Bypass => "PASS (bypass case)",
                    Verdict::Pass => "PASS",
                    Verdict::Fail => "FAIL",
                },
            });
            match verdict {
                Verdict::Bypass => {}
                Verdict::Pass => cx.count(Error::CheckOk, 1),
                Verdict::Fail => return Err(Error::CheckFail),
            }
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
