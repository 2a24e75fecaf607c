//! `ip6-redirect`: packets that leave by the interface they came in by. RFC 4861 8.2.
//! ip6-rewrite -> **ip6-redirect** -> ip6-rewrite, and ip6-lookup for what its sender is told
//!
//! A frame node, because one packet becomes two.

use std::net::{IpAddr, Ipv6Addr};

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::{Buffer, FibIndex, Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_icmp::Allowance;
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::nd::{HOP_LIMIT, Redirect};
use shoal_wire::{Icmp6Type, IntoBytes, Ip6Header, IpProtocol, MacAddress};

use crate::Links;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The packet goes its way.
    #[node("ip6-rewrite")]
    Rewrite,
    /// Its sender gets a redirect to the better one.
    #[node("ip6-lookup")]
    Lookup,
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// redirects sent
    #[counter("redirect")]
    #[severity(info)]
    Sent,
    /// redirects not sent, next hop is a router whose link-local address is not known
    #[severity(info)]
    NoLinkLocal,
    /// redirects not sent, rate limit reached
    #[severity(warn)]
    RateLimited,
    /// redirects not sent, no buffers
    #[severity(warn)]
    NoBuffers,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("better first hop for {destination}: {target}")]
struct Trace {
    destination: Ipv6Addr,
    target: Ipv6Addr,
}

/// Knows the stations on a link and the next hops.
pub(crate) struct Ip6Redirect {
    pub(crate) adjacencies: AdjTable,
    pub(crate) interfaces: IfTable,
    pub(crate) links: Links,
    pub(crate) allowance: Allowance,
}

/// The redirect to a sender.
struct BetterHop {
    us: Ipv6Addr,
    sender: Ipv6Addr,
    destination: Ipv6Addr,
    target: Ipv6Addr,
    mac: MacAddress,
}

impl Ip6Redirect {
    /// The message to send, when the sender is a neighbour on the link where the next hop is.
    fn better(&self, pkt: &Packet<'_>, cx: &FrameCx<'_>) -> Option<Result<BetterHop, Error>> {
        let ip = pkt.header::<Ip6Header>()?;
        let (sender, destination) = (ip.src(), ip.dst());
        // A link that a program feeds has no listener.
        if self.interfaces.get(pkt.rx(), cx.guard()).flags().has(IfFlags::FED) {
            return None;
        }
        let link = self.links.get(pkt.rx(), cx.guard())?;
        if !link.is_on_link(sender) || link.is_own(sender) || destination.is_multicast() {
            return None;
        }
        let adj = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard());
        let mac = adj.ethernet_rewrite()?.first_chunk().copied().map(MacAddress)?;
        // An IPv4 neighbour (RFC 8950 the other way round) has no address that could go into the redirect.
        let Some(IpAddr::V6(target)) = adj.next_hop() else { return None };
        // A host needs no way to itself.
        if target == sender {
            return None;
        }
        // RFC 4861 4.5: a router is named by its link-local address and hosts believe no other (8.1); a host that is the
        // destination itself by that.
        if target != destination && !is_link_local(target) {
            return Some(Err(Error::NoLinkLocal));
        }
        let us = link.link_local()?;
        Some(Ok(BetterHop { us, sender, destination, target, mac }))
    }

    fn message(&self, pkt: &Packet<'_>, better: &BetterHop, cx: &mut FrameCx<'_>) -> Option<Buffer> {
        let BetterHop { us, sender, destination, target, mac } = *better;
        let mut quote = [0; Ip6Header::MIN_MTU];
        let quoted = pkt.copy_to(&mut quote);
        let mut out = [0; Ip6Header::MIN_MTU];
        let (front, place) = out.split_at_mut_checked(Ip6Header::LEN)?;
        // As much of the packet as fits the smallest MTU.
        let redirect = Redirect::new(target, destination).write(place).target_link_layer(mac);
        let len = redirect.redirected_header(quote.get(..quoted)?).finish(us, sender)?;
        let ip = Ip6Header::new(us, sender, IpProtocol::ICMP6, HOP_LIMIT, len as u16);
        front.copy_from_slice(ip.as_bytes());
        let mut buffer = cx.cache().alloc_data(out.get(..Ip6Header::LEN + len)?).ok()?;
        let table = self.interfaces.get(pkt.rx(), cx.guard()).fib_ip6;
        let mut message = cx.cache().packet(&mut buffer);
        let front = message.current();
        let meta = message.meta_mut();
        // A link-local address is looked up on the link the packet came from.
        (meta.rx, meta.l3) = (pkt.rx(), front);
        meta.set_fib(Some(FibIndex(table)));
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        Some(buffer)
    }

    fn tell(&self, pkt: &Packet<'_>, cx: &mut FrameCx<'_>) {
        let better = match self.better(pkt, cx) {
            Some(Ok(better)) => better,
            Some(Err(why)) => return cx.count(why, 1),
            None => return,
        };
        let BetterHop { destination, target, .. } = better;
        cx.trace(pkt, || Trace { destination, target });
        // RFC 4861 8.2: limited, together with errors.
        if !self.allowance.take(cx.now()) {
            return cx.count(Error::RateLimited, 1);
        }
        let Some(message) = self.message(pkt, &better, cx) else { return cx.count(Error::NoBuffers, 1) };
        cx.count(Error::Sent, 1);
        self.allowance.count(Icmp6Type::REDIRECT.0, cx.thread());
        cx.send(Next::Lookup.edge(), message);
    }
}

impl FrameNode for Ip6Redirect {
    const NAME: &'static str = "ip6-redirect";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let memory = cx.memory();
        for i in 0..frame.len() {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let meta = pkt.meta_mut();
            meta.flags = meta.flags.with(Flags::REDIRECT_DONE);
            self.tell(&pkt, cx);
        }
        cx.send_frame(Next::Rewrite.edge(), frame);
    }
}
