//! `icmp6-multicast-listener-query`: a router asks which groups have listeners. RFC 3810 6.2.
//! ICMPv6 by type -> **icmp6-multicast-listener-query** -> drop; the control plane reports

use std::net::Ipv6Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::mld::{HOP_LIMIT, MldQuery};

use super::receive::{Headers, ReceiveContext, Rejection, ReportThrottle};
use crate::fact::Fact;

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
    /// listener query is cut short
    TooShort,
    /// Interface is not IP enabled
    #[counter("interface_not_ip_enabled")]
    NotEnabled,
    /// listener queries that break a rule of RFC 3810 6.2
    Invalid,
    /// listener queries received
    #[severity(info)]
    Received,
    /// listener queries not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

impl From<Rejection> for Error {
    fn from(wrong: Rejection) -> Self {
        match wrong {
            Rejection::NotEthernet | Rejection::NotEnabled => Error::NotEnabled,
            _ => Error::TooShort,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who listens to {group}? from {from}")]
pub struct Trace {
    group: Ipv6Addr,
    from: Ipv6Addr,
}

/// Looks at queries.
pub(crate) struct ListenerQuery {
    eyes: ReceiveContext,
    told: ReportThrottle,
}

impl ListenerQuery {
    pub(crate) fn new(eyes: ReceiveContext) -> Self {
        ListenerQuery { eyes, told: ReportThrottle::new() }
    }
}

impl PacketNode for ListenerQuery {
    const NAME: &'static str = "icmp6-multicast-listener-query";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let headers = Headers::of(pkt).ok_or(Rejection::TooShort)?;
        let from = headers.ip.src();
        // RFC 3810 6.2. The router alert is for routers on the way, and there is none: it is not asked for here.
        if headers.ip.hop_limit() != HOP_LIMIT || !is_link_local(from) {
            return Err(Error::Invalid);
        }
        let query = MldQuery::parse(headers.message(pkt)).map_err(|_| Error::Invalid)?;
        let (group, max_response_ms) = (query.group, query.max_response_ms);
        cx.trace(pkt, || Trace { group: group.unwrap_or(Ipv6Addr::UNSPECIFIED), from });
        self.eyes.link(rx, cx.guard())?;
        let version = query.version;
        let fact = Fact::Queried { interface: rx, version, group, max_response_ms };
        if self.told.tell(&self.eyes, fact, (rx.0, version, group), cx.thread(), cx.now()) == Some(false) {
            return Err(Error::Congested);
        }
        cx.count(Error::Received, 1);
        Ok(Next::Done)
    }
}
