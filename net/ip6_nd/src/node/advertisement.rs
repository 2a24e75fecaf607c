//! `icmp6-neighbor-advertisement`: somebody says where an address is. RFC 4861 7.1.2, 7.2.5; RFC 4862 5.4.4.
//! ICMPv6 by type -> **icmp6-neighbor-advertisement** -> drop

use std::net::Ipv6Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_wire::nd::{NaFlags, NeighborAdvertisement};

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
    /// neighbor advertisement is cut short
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
    /// neighbor advertisements that break a rule of RFC 4861 7.1.2
    Invalid,
    /// neighbor advertisements for a target not on link
    TargetElsewhere,
    /// neighbor advertisements from source not on link
    SourceElsewhere,
    /// neighbor advertisements for an address of this router
    TargetIsLocal,
    /// neighbor advertisements received
    #[counter("neighbor_advertisements_rx")]
    #[severity(info)]
    Received,
    /// neighbor advertisements not looked at, too many at a time
    #[severity(warn)]
    LearnCongested,
}

wrong!(Error);

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{target} flags 0x{flags:02x} from {from}")]
pub struct Trace {
    target: Ipv6Addr,
    flags: u8,
    from: Ipv6Addr,
}

/// Looks at advertisements.
pub(crate) struct Advertisement {
    eyes: ReceiveContext,
    told: ReportThrottle,
}

impl Advertisement {
    pub(crate) fn new(eyes: ReceiveContext) -> Self {
        Advertisement { eyes, told: ReportThrottle::new() }
    }
}

impl PacketNode for Advertisement {
    const NAME: &'static str = "icmp6-neighbor-advertisement";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let headers = Headers::of(pkt).ok_or(Rejection::TooShort)?;
        let (message, options) = NeighborAdvertisement::check(&headers.ip, headers.message(pkt))?;
        let asked_for = message.flags().contains(NaFlags::SOLICITED);
        let kind = if asked_for { Kind::NeighbourAdvertisement } else { Kind::UnsolicitedAdvertisement };
        self.eyes.counters.count_rx(kind, cx.thread(), rx);
        let (target, flags, mac) = (message.target(), message.flags(), options.target_link_layer());
        let from = headers.ip.src();
        cx.trace(pkt, || Trace { target, flags: flags.0, from });
        check_mac(mac)?;
        let (link, our_mac) = self.eyes.link(rx, cx.guard())?;
        let (fact, local) = if link.own(target).is_some() {
            // RFC 4862 5.4.4: whatever its standing, there are two of it now. Our own words may come back to us.
            if headers.from_mac == our_mac {
                return Err(Error::TargetIsLocal);
            }
            (Fact::Claimed { interface: rx, address: target, mac: headers.from_mac }, true)
        } else if !link.is_on_link(target) {
            return Err(Error::TargetElsewhere);
        } else if !link.is_on_link(from) || link.own(from).is_some() {
            return Err(Error::SourceElsewhere);
        } else {
            (Fact::Advertised { interface: rx, target, mac, flags }, false)
        };
        let about = (rx.0, target, mac.map(|m| m.0), flags.0);
        if self.told.tell(&self.eyes, fact, about, cx.thread(), cx.now()) == Some(false) {
            return Err(Error::LearnCongested);
        }
        if local {
            return Err(Error::TargetIsLocal);
        }
        cx.count(Error::Received, 1);
        Ok(Next::Done)
    }
}
