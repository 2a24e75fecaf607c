//! `ip6-unicast-nd-proxy`, `ip6-multicast-nd-proxy`: solicitations of hosts that use this router's own addresses are
//! answered for everybody.
//! features of `ip6-unicast` or `ip6-multicast` -> **ip6-unicast-nd-proxy** -> the next feature | interface-output
//!
//! Such a host is behind an interface that borrows its addresses from another one, and has the lender's address as its
//! own, so it speaks from an address of this router. Everybody else is reached through the router. It asks for one
//! neighbour by unicast when it wants to know whether that one is still there: that is answered when the neighbour is
//! known on another link, and goes on otherwise, so that the other link is asked.

use std::net::Ipv6Addr;

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_wire::nd::{NaFlags, NeighborSolicitation};
use shoal_wire::{EthernetHeader, Icmp6Type, Ip6Header, IpProtocol, MacAddress};

use super::receive::{ReceiveContext, ReportThrottle, check_mac};
use crate::counters::Kind;
use crate::fact::Fact;
use crate::frame::{advertisement, answer_in_place, answer_to};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The answer, back out of the interface the question came in by.
    #[node("interface-output")]
    Reply,
    /// Along the arc.
    On(Edge),
}

/// What is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// neighbor advertisements sent for others
    #[counter("neighbor_advertisements_tx")]
    #[severity(info)]
    Sent,
    /// neighbor solicitation has no room for its answer
    NoRoom,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}? from {from}")]
pub struct Trace {
    target: Ipv6Addr,
    from: Ipv6Addr,
}

/// A solicitation that may be answered.
#[derive(Clone, Copy)]
struct Question {
    from: Ipv6Addr,
    target: Ipv6Addr,
    from_mac: MacAddress,
    our_mac: MacAddress,
    said: Option<MacAddress>,
}

/// Answers for everybody.
pub(crate) struct Mirror<const GROUP: bool> {
    eyes: ReceiveContext,
    told: ReportThrottle,
    fib: FibTables,
    adjacencies: AdjTable,
}

impl<const GROUP: bool> Mirror<GROUP> {
    pub(crate) fn new(eyes: ReceiveContext, fib: FibTables, adjacencies: AdjTable) -> Self {
        Mirror { eyes, told: ReportThrottle::new(), fib, adjacencies }
    }

    /// A solicitation for an address that is none of ours on the link; others are judged where they always are.
    fn question(&self, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Option<Question> {
        let ip = *pkt.header::<Ip6Header>().filter(|ip| ip.protocol() == IpProtocol::ICMP6)?;
        let len = usize::from(ip.payload_length());
        let bytes = pkt.data().get(Ip6Header::LEN..Ip6Header::LEN + len)?;
        if *bytes.first()? != Icmp6Type::NEIGHBOR_SOLICITATION.0 {
            return None;
        }
        let (message, options) = NeighborSolicitation::check(&ip, bytes).ok()?;
        let (from, target, said) = (ip.src(), message.target(), options.source_link_layer());
        let (link, our_mac) = self.eyes.link(pkt.rx(), cx.guard()).ok()?;
        let ours = link.is_own(target) || link.proxied.contains(&target);
        if ours || from.is_unspecified() || check_mac(said).is_err() {
            return None;
        }
        if !GROUP && (ip.dst() != target || !self.is_known(target, pkt.rx(), cx)) {
            return None;
        }
        pkt.push(EthernetHeader::LEN)?;
        let from_mac = pkt.header::<EthernetHeader>().map(EthernetHeader::src);
        pkt.pull(EthernetHeader::LEN)?;
        Some(Question { from, target, from_mac: from_mac?, our_mac, said })
    }

    /// Whether a neighbour is known on another link.
    fn is_known(&self, target: Ipv6Addr, rx: SwIfIndex, cx: &Cx<'_, Self>) -> bool {
        let fib = FibIndex(self.eyes.interfaces.ip6_table(rx));
        let index = self.fib.lookup_ip6(fib, target.to_bits(), cx.guard());
        let adj = self.adjacencies.get(index, cx.guard());
        // A stale neighbour's adjacency has the way to it.
        let stale = adj.kind() == AdjKind::Incomplete && !adj.rewrite().is_empty();
        (adj.is_rewrite() || stale) && adj.tx() != rx && adj.next_hop() == Some(target.into())
    }
}

impl<const GROUP: bool> PacketNode for Mirror<GROUP> {
    const NAME: &'static str = if GROUP { "ip6-multicast-nd-proxy" } else { "ip6-unicast-nd-proxy" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let next = cx.next_feature(pkt);
        let Some(asked) = self.question(pkt, cx) else { return Ok(Next::On(next)) };
        let (rx, Question { from, target, .. }) = (pkt.rx(), asked);
        cx.trace(pkt, || Trace { target, from });
        if let Some(mac) = asked.said {
            let about = (rx.0, from, mac.0);
            let fact = Fact::Solicited { interface: rx, from, mac };
            self.told.tell(&self.eyes, fact, about, cx.thread(), cx.now());
        }
        self.eyes.counters.count_rx(Kind::NeighbourSolicitation, cx.thread(), rx);
        let way = answer_to(asked.our_mac, target, from, asked.from_mac);
        // RFC 4861 7.2.4: a proxy's answer does not override.
        let answer =
            advertisement(&way, target, NaFlags::ROUTER | NaFlags::SOLICITED).ok_or(Error::NoRoom)?;
        let data = self.eyes.interfaces.get(rx, cx.guard());
        answer_in_place(pkt, data, &answer).ok_or(Error::NoRoom)?;
        self.eyes.counters.count_tx(Kind::NeighbourAdvertisement, cx.thread(), rx);
        cx.count(Error::Sent, 1);
        Ok(Next::Reply)
    }
}
