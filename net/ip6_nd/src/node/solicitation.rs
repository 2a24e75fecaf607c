//! `icmp6-neighbor-solicitation`: somebody asks for an address. RFC 4861 7.1.1, 7.2.3, 7.2.4; RFC 4862 5.4.3.
//! ICMPv6 by type -> **icmp6-neighbor-solicitation** -> interface-output for the answer, made where the question lies

use std::net::Ipv6Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;
use shoal_wire::nd::{NaFlags, NeighborSolicitation};

use super::receive::{Headers, ReceiveContext, Rejection, ReportThrottle, check_mac, wrong};
use crate::AddressState;
use crate::counters::Kind;
use crate::fact::Fact;
use crate::frame::{advertisement, answer_in_place, answer_to};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The answer, back out of the interface the question came in by.
    #[node("interface-output")]
    Reply,
}

/// Why a packet is dropped here, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// neighbor solicitation is cut short
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
    /// neighbor solicitations that break a rule of RFC 4861 7.1.1
    Invalid,
    /// neighbor solicitations from source not on link
    #[counter("neighbor_solicitation_source_not_on_link")]
    SourceElsewhere,
    /// neighbor solicitations from an address of this router
    SourceIsLocal,
    /// neighbor solicitations for unknown targets
    #[counter("neighbor_solicitation_source_unknown")]
    TargetUnknown,
    /// neighbor solicitations for a tentative address
    Tentative,
    /// neighbor advertisements sent
    #[counter("neighbor_advertisements_tx")]
    #[severity(info)]
    Sent,
    /// neighbor solicitation source learned
    #[severity(info)]
    Learned,
    /// neighbor solicitation sources not learned, too many at a time
    #[severity(warn)]
    LearnCongested,
}

wrong!(Error);

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}? from {from}")]
pub struct Trace {
    target: Ipv6Addr,
    from: Ipv6Addr,
}

/// Looks at solicitations.
pub(crate) struct Solicitation {
    eyes: ReceiveContext,
    told: ReportThrottle,
}

/// What a solicitation asks, after all checks.
struct Question {
    target: Ipv6Addr,
    mac: Option<MacAddress>,
}

impl Solicitation {
    pub(crate) fn new(eyes: ReceiveContext) -> Self {
        Solicitation { eyes, told: ReportThrottle::new() }
    }

    fn tell(&self, fact: Fact, about: (SwIfIndex, Ipv6Addr, MacAddress), cx: &Cx<'_, Self>) {
        let counter =
            match self.told.tell(&self.eyes, fact, (about.0.0, about.1, about.2.0), cx.thread(), cx.now()) {
                Some(true) => Error::Learned,
                Some(false) => Error::LearnCongested,
                None => return,
            };
        cx.count(counter, 1);
    }

    /// Whether it is answered, and with which flags.
    fn flags(
        &self,
        rx: SwIfIndex,
        headers: &Headers,
        asked: &Question,
        cx: &Cx<'_, Self>,
    ) -> Result<NaFlags, Error> {
        let (link, our_mac) = self.eyes.link(rx, cx.guard())?;
        let (from, target) = (headers.ip.src(), asked.target);
        if from.is_unspecified() {
            // RFC 4862 5.4.3: somebody wants the address. Our own question may come back to us.
            if link.own(target) == Some(AddressState::Tentative) && headers.from_mac != our_mac {
                let claim = Fact::Claimed { interface: rx, address: target, mac: headers.from_mac };
                self.tell(claim, (rx, target, headers.from_mac), cx);
            }
        } else if link.is_own(from) {
            return Err(Error::SourceIsLocal);
        } else if !link.is_on_link(from) {
            // RFC 4861 gives no right to be entered to a source that this router would not send to.
            return Err(Error::SourceElsewhere);
        }
        let solicited = if from.is_unspecified() { NaFlags::default() } else { NaFlags::SOLICITED };
        let flags = match link.own(target) {
            _ if link.virtual_addresses.contains_key(&target) => {
                NaFlags::ROUTER | NaFlags::OVERRIDE | solicited
            }
            Some(AddressState::Ours) => NaFlags::ROUTER | NaFlags::OVERRIDE | solicited,
            // RFC 4862 5.4.3, 5.4.5: what is not ours is not answered for.
            Some(AddressState::Tentative | AddressState::Duplicate) => return Err(Error::Tentative),
            // RFC 4861 7.2.4: an answer that is one of many, and that of a proxy, does not override.
            None if link.anycast.contains(&target) => NaFlags::ROUTER | solicited,
            None if link.proxied.contains(&target) && !from.is_unspecified() => NaFlags::ROUTER | solicited,
            None => return Err(Error::TargetUnknown),
        };
        if let Some(mac) = asked.mac {
            self.tell(Fact::Solicited { interface: rx, from, mac }, (rx, from, mac), cx);
        }
        Ok(flags)
    }
}

impl PacketNode for Solicitation {
    const NAME: &'static str = "icmp6-neighbor-solicitation";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        self.eyes.counters.count_rx(Kind::NeighbourSolicitation, cx.thread(), rx);
        let headers = Headers::of(pkt).ok_or(Rejection::TooShort)?;
        let (message, options) = NeighborSolicitation::check(&headers.ip, headers.message(pkt))?;
        let asked = Question { target: message.target(), mac: options.source_link_layer() };
        let from = headers.ip.src();
        cx.trace(pkt, || Trace { target: asked.target, from });
        check_mac(asked.mac)?;
        let flags = self.flags(rx, &headers, &asked, cx)?;
        let (link, our_mac) = self.eyes.link(rx, cx.guard())?;
        let our_mac = link.virtual_addresses.get(&asked.target).copied().unwrap_or(our_mac);
        // The station that asks is where its frame came from, whether it says so or not.
        let way = answer_to(our_mac, asked.target, from, headers.from_mac);
        let answer = advertisement(&way, asked.target, flags).ok_or(Error::TooShort)?;
        let data = self.eyes.interfaces.get(rx, cx.guard());
        answer_in_place(pkt, data, &answer).ok_or(Error::TooShort)?;
        self.eyes.counters.count_tx(Kind::NeighbourAdvertisement, cx.thread(), rx);
        cx.count(Error::Sent, 1);
        Ok(Next::Reply)
    }
}
