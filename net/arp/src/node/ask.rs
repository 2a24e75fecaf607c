//! What `ip4-arp` and `ip4-glean` share: ask the link for a neighbour, keep the packet until it answers.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_adj::{Adj, AdjIndex, Link};
use shoal_buffer::Buffer;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{FrameCx, NextNodes as _};
use shoal_interface::SwIfIndex;
use shoal_neighbor::MOST_HELD_EACH;
use shoal_neighbor::message::Waiting;
use shoal_neighbor::throttle::Throttle;

use crate::counters::{ArpCounters, Kind};
use crate::message::Fact;
use crate::request::{self, Question};
use crate::subnet::Subnets;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request, out of an interface.
    #[node("interface-output")]
    Output,
    /// The neighbour answered a moment ago.
    #[node("ip4-rewrite")]
    Rewrite,
}

/// Why a packet is dropped, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ARP requests throttled
    #[severity(info)]
    Throttled,
    /// ARP requests resolved
    #[severity(info)]
    Resolved,
    /// ARP requests out of buffer
    NoBuffers,
    /// ARP requests sent
    #[severity(info)]
    RequestSent,
    /// ARPs to non-ARP adjacencies
    NonArpAdj,
    /// no source address for ARP request
    NoSourceAddress,
    /// interface is down
    #[counter("interface_down")]
    Down,
    /// packets waiting for their neighbour
    #[severity(info)]
    Held,
    /// packets to neighbours not heard of lately
    #[severity(info)]
    Stale,
    /// too many packets for unknown neighbours at a time
    #[severity(warn)]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}? sw_if_index {tx}, our address {source}")]
pub struct Trace {
    target: Ipv4Addr,
    source: Ipv4Addr,
    tx: u32,
}

/// A neighbour is asked for by packets once in this time and thread, as VPP does; the control plane repeats every second. One
/// packet that comes soon after a change is to be enough to see it.
const INTERVAL: Duration = Duration::from_millis(1);
/// The control plane learns that packets go to a neighbour once in this time and thread.
const USED: Duration = Duration::from_millis(100);

/// The address to ask for, and which of our addresses to ask with.
pub(crate) struct Target {
    pub(crate) interface: SwIfIndex,
    pub(crate) next_hop: u32,
    pub(crate) source: u32,
}

/// Asks, and hands packets to the control plane to keep.
pub(crate) struct ArpRequester {
    pub(crate) subnets: Subnets,
    counters: ArpCounters,
    wait: Sender<Waiting<Ipv4Addr>>,
    tell: Sender<Fact>,
    asked: Throttle,
    used: Throttle,
}

impl ArpRequester {
    pub(crate) fn new(
        subnets: Subnets,
        counters: ArpCounters,
        wait: Sender<Waiting<Ipv4Addr>>,
        tell: Sender<Fact>,
    ) -> Self {
        ArpRequester {
            subnets,
            counters,
            wait,
            tell,
            asked: Throttle::new(INTERVAL),
            used: Throttle::new(USED),
        }
    }

    /// How often something was done for a neighbour lately on this thread.
    fn lately(throttle: &Throttle, interface: SwIfIndex, next_hop: Ipv4Addr, cx: &FrameCx<'_>) -> u32 {
        let key = u64::from(interface.0) << 32 | u64::from(next_hop.to_bits());
        throttle.hit(cx.thread(), key, cx.now())
    }

    /// The neighbour is known but has not been heard of lately: the packet goes on by a way that has the rewrite, and
    /// the control plane learns that packets go there. RFC 1122, 2.3.2.1.
    pub(crate) fn stale(&self, mut buffer: Buffer, adj: &Adj, way: AdjIndex, cx: &mut FrameCx<'_>) {
        let (interface, next_hop) = (adj.tx(), Ipv4Addr::from_bits(adj.next_hop_ip4()));
        if Self::lately(&self.used, interface, next_hop, cx) == 0 {
            // A full channel is no harm: the next packet tells it again.
            let _ = self.tell.try_send(Fact::Used((interface, next_hop)));
        }
        cx.cache().packet(&mut buffer).meta_mut().adj = way.0;
        cx.count(Error::Stale, 1);
        cx.send(Next::Rewrite.edge(), buffer);
    }

    /// Asks for a packet's neighbour unless that was done just now, and keeps the packet.
    pub(crate) fn ask(&self, mut buffer: Buffer, target: &Target, cx: &mut FrameCx<'_>) {
        let Target { interface, next_hop, source } = *target;
        let (next_hop, source) = (Ipv4Addr::from_bits(next_hop), Ipv4Addr::from_bits(source));
        let pkt = cx.cache().packet(&mut buffer);
        cx.trace(&pkt, || Trace { target: next_hop, source, tx: interface.0 });
        let data = *self.subnets.interfaces.get(interface, cx.guard());
        if !data.is_up() {
            return cx.drop(buffer, Error::Down);
        }
        if source.is_unspecified() {
            return cx.drop(buffer, Error::NoSourceAddress);
        }
        let before = Self::lately(&self.asked, interface, next_hop, cx);
        if before == 0 {
            let question = Question { interface, data, source, to: None, target: next_hop };
            let Some(request) = request::packet(&question, cx.cache()) else {
                return cx.drop(buffer, Error::NoBuffers);
            };
            cx.send(Next::Output.edge(), request);
            cx.count(Error::RequestSent, 1);
            self.counters.count_tx(Kind::Request, cx.thread(), interface);
        }
        if before as usize >= MOST_HELD_EACH {
            return cx.drop(buffer, Error::Throttled);
        }
        match self.wait.try_send(Waiting { interface, next_hop, source, link: Link::Ip4, buffer }) {
            Ok(()) => cx.count(Error::Held, 1),
            Err(refused) => cx.drop(refused.into_inner().buffer, Error::Congested),
        }
    }

    /// The neighbour answered between the lookup and here.
    pub(crate) fn resolved(buffer: Buffer, cx: &mut FrameCx<'_>) {
        cx.count(Error::Resolved, 1);
        cx.send(Next::Rewrite.edge(), buffer);
    }
}
