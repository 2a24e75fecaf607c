//! `icmp6-router-solicitation`: a host asks which routers are here. RFC 4861 6.1.1, 6.2.6.
//! ICMPv6 by type -> **icmp6-router-solicitation** -> drop; the control plane answers

use std::net::Ipv6Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};

use super::receive::{Headers, ReceiveContext, Rejection, ReportThrottle, check_mac, wrong};
use crate::counters::Kind;
use crate::fact::Fact;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has been understood.
    #[node("drop")]
    Done,
}

/// Why a packet is dropped here, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// router solicitation is cut short
    TooShort,
    /// neighbor discovery on an interface without stations
    NotEthernet,
    /// Interface is not IP enabled
    #[counter("interface_not_ip_enabled")]
    NotEnabled,
    /// neighbor discovery message with a hop limit that is not 255
    HopLimit,
    /// neighbor discovery message with a malformed option
    Options,
    /// router solicitations that break a rule of RFC 4861 6.1.1
    Invalid,
    /// router solicitations from source not on link
    #[counter("router_solicitation_source_not_on_link")]
    SourceElsewhere,
    /// router solicitations received
    #[severity(info)]
    Received,
    /// router solicitations not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

wrong!(Error);

/// What `show trace` says.
#[derive(TraceLine)]
#[line("which routers are here? from {from}")]
pub struct Trace {
    from: Ipv6Addr,
}

/// Looks at router solicitations.
pub(crate) struct RouterSolicitation {
    eyes: ReceiveContext,
    told: ReportThrottle,
}

impl RouterSolicitation {
    pub(crate) fn new(eyes: ReceiveContext) -> Self {
        RouterSolicitation { eyes, told: ReportThrottle::new() }
    }
}

impl PacketNode for RouterSolicitation {
    const NAME: &'static str = "icmp6-router-solicitation";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        self.eyes.counters.count_rx(Kind::RouterSolicitation, cx.thread(), rx);
        let headers = Headers::of(pkt).ok_or(Rejection::TooShort)?;
        let from = headers.ip.src();
        cx.trace(pkt, || Trace { from });
        let (_, options) = shoal_wire::nd::RouterSolicitation::check(&headers.ip, headers.message(pkt))?;
        let mac = options.source_link_layer();
        check_mac(mac)?;
        let (link, _) = self.eyes.link(rx, cx.guard())?;
        if !from.is_unspecified() && (!link.is_on_link(from) || link.own(from).is_some()) {
            return Err(Error::SourceElsewhere);
        }
        if let (Some(mac), false) = (mac, from.is_unspecified()) {
            let fact = Fact::Solicited { interface: rx, from, mac };
            self.told.tell(&self.eyes, fact, (rx.0, from, mac.0), cx.thread(), cx.now());
        }
        let fact = Fact::RouterSolicited { interface: rx, from, mac: headers.from_mac };
        if self.told.tell(&self.eyes, fact, (rx.0, from), cx.thread(), cx.now()) == Some(false) {
            return Err(Error::Congested);
        }
        cx.count(Error::Received, 1);
        Ok(Next::Done)
    }
}
