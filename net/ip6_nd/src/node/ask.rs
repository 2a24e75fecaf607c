//! What `ip6-discover-neighbor` and `ip6-glean` share: ask the link for a neighbour, keep the packet until it answers.

use std::net::Ipv6Addr;
use std::time::Duration;

use shoal_adj::{AdjTable, Link as Payload};
use shoal_buffer::Buffer;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{FrameCx, NextNodes as _};
use shoal_interface::SwIfIndex;
use shoal_neighbor::message::Waiting;
use shoal_neighbor::throttle::Throttle;
use shoal_neighbor::{MOST_HELD_EACH, Question};

use super::receive::{ReceiveContext, key};
use crate::Link;
use crate::counters::Kind;
use crate::frame;
use crate::protocol::way_of;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A solicitation, out of an interface.
    #[node("interface-output")]
    Output,
    /// To a neighbour that is known.
    #[node("ip6-rewrite")]
    Rewrite,
    /// The same for IPv4 packets (RFC 8950).
    #[node("ip4-rewrite")]
    Rewrite4,
}

/// Why a packet is dropped, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// throttled
    #[severity(info)]
    Throttled,
    /// resolved
    #[severity(info)]
    Resolved,
    /// no buffers
    NoBuffers,
    /// neighbor solicitations sent
    #[counter("request_sent")]
    #[severity(info)]
    RequestSent,
    /// adjacency is not one that waits for a neighbor
    NonArpAdj,
    /// no source address to ask with
    NoSourceAddress,
    /// interface is down
    #[counter("interface_down")]
    Down,
    /// packets waiting for their neighbour
    #[severity(info)]
    Held,
    /// packets to stale neighbours
    #[severity(info)]
    Stale,
    /// too many packets for unknown neighbours at a time
    #[severity(warn)]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}? sw_if_index {tx}")]
pub struct Trace {
    target: Ipv6Addr,
    tx: u32,
}

/// A neighbour is asked for by packets once in this time and thread; the control plane repeats every second. As for
/// ARP, one packet that comes soon after a change is to be enough to see it.
const INTERVAL: Duration = Duration::from_millis(1);
/// The control plane learns that packets go to a neighbour once in this time and thread.
const USED: Duration = Duration::from_millis(100);

/// The address to ask for, and which of our addresses to ask with.
pub(crate) struct Target {
    pub(crate) interface: SwIfIndex,
    pub(crate) next_hop: Ipv6Addr,
    pub(crate) source: Option<Ipv6Addr>,
    pub(crate) link: Payload,
}

/// Asks, and hands packets to the control plane to keep.
pub(crate) struct Solicitor {
    pub(crate) eyes: ReceiveContext,
    pub(crate) adjacencies: AdjTable,
    wait: Sender<Waiting<Ipv6Addr>>,
    asked: Throttle,
    used: Throttle,
}

impl Solicitor {
    pub(crate) fn new(eyes: ReceiveContext, adjacencies: AdjTable, wait: Sender<Waiting<Ipv6Addr>>) -> Self {
        Solicitor { eyes, adjacencies, wait, asked: Throttle::new(INTERVAL), used: Throttle::new(USED) }
    }

    /// How often the control plane learnt lately on this thread that packets go to a neighbour.
    pub(crate) fn told_used(&self, interface: SwIfIndex, next_hop: Ipv6Addr, cx: &FrameCx<'_>) -> u32 {
        self.used.hit(cx.thread(), key(interface, next_hop), cx.now())
    }

    /// Asks for a packet's neighbour unless that was done just now, and keeps the packet.
    pub(crate) fn ask(&self, mut buffer: Buffer, target: &Target, cx: &mut FrameCx<'_>) {
        let Target { interface, next_hop, source, link } = *target;
        let pkt = cx.cache().packet(&mut buffer);
        cx.trace(&pkt, || Trace { target: next_hop, tx: interface.0 });
        let data = *self.eyes.interfaces.get(interface, cx.guard());
        if !data.is_up() {
            return cx.drop(buffer, Error::Down);
        }
        // RFC 4861 7.2.2: any address of the interface will do; VPP takes the link-local one.
        let us = self.eyes.links.get(interface, cx.guard());
        let other = || us.and_then(|us| us.source_for(next_hop));
        let Some(source) = us.and_then(Link::link_local).or(source).or_else(other) else {
            return cx.drop(buffer, Error::NoSourceAddress);
        };
        let before = self.asked.hit(cx.thread(), key(interface, next_hop), cx.now());
        if before == 0 {
            let question = Question { interface, data, source, to: None, target: next_hop };
            let frame = frame::solicitation(&way_of(&question), next_hop);
            let bytes = frame.as_ref().and_then(|(bytes, len)| bytes.get(..*len)).unwrap_or_default();
            let Some(request) = frame::packet(bytes, (interface, &data), cx.cache()) else {
                return cx.drop(buffer, Error::NoBuffers);
            };
            cx.send(Next::Output.edge(), request);
            cx.count(Error::RequestSent, 1);
            self.eyes.counters.count_tx(Kind::NeighbourSolicitation, cx.thread(), interface);
        }
        if before as usize >= MOST_HELD_EACH {
            return cx.drop(buffer, Error::Throttled);
        }
        match self.wait.try_send(Waiting { interface, next_hop, source, link, buffer }) {
            Ok(()) => cx.count(Error::Held, 1),
            Err(refused) => cx.drop(refused.into_inner().buffer, Error::Congested),
        }
    }

    /// To the node that puts the rewrite in front, by the adjacency the packet holds.
    pub(crate) fn rewrite(buffer: Buffer, link: Payload, cx: &mut FrameCx<'_>) {
        let next = if link == Payload::Ip4 { Next::Rewrite4 } else { Next::Rewrite };
        cx.send(next.edge(), buffer);
    }
}
