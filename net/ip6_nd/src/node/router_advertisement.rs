//! `icmp6-router-advertisement`: another router speaks to hosts. RFC 4861 6.1.2, 6.2.7.
//! ICMPv6 by type -> **icmp6-router-advertisement** -> drop; the control plane compares, and makes addresses and a
//! default route of what it hears on interfaces where an operator wants that

use std::net::Ipv6Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_wire::nd_options::NdOption;

use super::receive::{Headers, ReceiveContext, Rejection, ReportThrottle, check_mac, wrong};
use crate::counters::Kind;
use crate::fact::{AdvertisedLink, Fact, MOST_PREFIXES};

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
    /// router advertisement is cut short
    TooShort,
    /// neighbor discovery on an interface without stations
    NotEthernet,
    /// Interface is not IP enabled
    #[counter("interface_not_ip_enabled")]
    NotEnabled,
    /// router advertisements from off-link, hop limit is not 255
    HopLimit,
    /// neighbor discovery message with a malformed option
    Options,
    /// router advertisements that break a rule of RFC 4861 6.1.2
    #[counter("router_advertisement_source_not_link_local")]
    Invalid,
    /// router advertisements from an address of this router
    SourceIsLocal,
    /// router advertisements received
    #[counter("router_advertisements_rx")]
    #[severity(info)]
    Received,
    /// router advertisements not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

wrong!(Error);

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{from} is a router for {lifetime} seconds")]
pub struct Trace {
    from: Ipv6Addr,
    lifetime: u16,
}

/// Looks at router advertisements.
pub(crate) struct RouterAdvertisement {
    eyes: ReceiveContext,
    told: ReportThrottle,
}

impl RouterAdvertisement {
    pub(crate) fn new(eyes: ReceiveContext) -> Self {
        RouterAdvertisement { eyes, told: ReportThrottle::new() }
    }
}

impl PacketNode for RouterAdvertisement {
    const NAME: &'static str = "icmp6-router-advertisement";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        self.eyes.counters.count_rx(Kind::RouterAdvertisement, cx.thread(), rx);
        let headers = Headers::of(pkt).ok_or(Rejection::TooShort)?;
        let (ra, options) = shoal_wire::nd::RouterAdvertisement::check(&headers.ip, headers.message(pkt))?;
        let mac = options.source_link_layer();
        let mtu = options
            .clone()
            .into_iter()
            .find_map(|o| if let NdOption::Mtu(mtu) = o { Some(mtu) } else { None });
        let mut prefixes = [None; MOST_PREFIXES];
        let all = options
            .into_iter()
            .filter_map(|o| if let NdOption::PrefixInformation(p) = o { Some(*p) } else { None });
        prefixes.iter_mut().zip(all).for_each(|(place, prefix)| *place = Some(prefix));
        let said = AdvertisedLink {
            flags: ra.flags(),
            lifetime_secs: ra.router_lifetime_secs(),
            hop_limit: ra.hop_limit(),
            mtu,
            reachable_ms: ra.reachable_time_ms(),
            retransmit_ms: ra.retrans_timer_ms(),
        };
        let from = headers.ip.src();
        cx.trace(pkt, || Trace { from, lifetime: said.lifetime_secs });
        check_mac(mac)?;
        let (link, _) = self.eyes.link(rx, cx.guard())?;
        if link.own(from).is_some() {
            return Err(Error::SourceIsLocal);
        }
        let fact = Fact::RouterAdvertised { interface: rx, from, mac, said, prefixes };
        if self.told.tell(&self.eyes, fact, (rx.0, from), cx.thread(), cx.now()) == Some(false) {
            return Err(Error::Congested);
        }
        cx.count(Error::Received, 1);
        Ok(Next::Done)
    }
}
