//! `icmp6-multicast-listener-report`: a host says to which groups it listens. RFC 2710, RFC 3810.
//! ICMPv6 by type -> **icmp6-multicast-listener-report** -> drop
//!
//! Counted only: this router forwards no multicast, so it keeps no record of listeners.

use std::net::Ipv6Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::mld::HOP_LIMIT;

use super::receive::{Headers, ReceiveContext};
use crate::counters::Kind;

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
    /// listener report is cut short
    TooShort,
    /// listener reports that break a rule of RFC 3810 5.2
    Invalid,
    /// listener reports received
    #[severity(info)]
    Received,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("listener report from {from}")]
pub struct Trace {
    from: Ipv6Addr,
}

/// Counts reports.
pub(crate) struct ListenerReport {
    pub(crate) eyes: ReceiveContext,
}

impl PacketNode for ListenerReport {
    const NAME: &'static str = "icmp6-multicast-listener-report";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let headers = Headers::of(pkt).ok_or(Error::TooShort)?;
        let from = headers.ip.src();
        cx.trace(pkt, || Trace { from });
        // RFC 3810 5.2.13: a station without a link-local address reports from the unspecified address.
        if headers.ip.hop_limit() != HOP_LIMIT || !(is_link_local(from) || from.is_unspecified()) {
            return Err(Error::Invalid);
        }
        self.eyes.counters.count_rx(Kind::ListenerReport, cx.thread(), rx);
        cx.count(Error::Received, 1);
        Ok(Next::Done)
    }
}
