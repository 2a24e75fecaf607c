//! `tcp-mss-clamping-ip4-in` and its like: SYN packets ask for no larger segments than the interface takes.
//! ip4-input | ip4-rewrite -> **tcp-mss-clamping-ip4-in** -> the next feature

use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::superpath::{Optional, Pass};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_infra::Guard;
use shoal_wire::{IpProtocol, Transport};

use crate::clamp::{Clamped, Sum, clamp};
use crate::sizes::Sizes;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// clamped
    #[severity(info)]
    Clamped,
    /// TCP options are wrong or beyond the first buffer
    #[severity(warn)]
    Malformed,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("mss: {from} clamped: {to}")]
pub struct Trace {
    from: u16,
    to: u16,
}

/// The code of all four nodes, by family and direction.
pub struct Clamping<const IP6: bool, const TX: bool> {
    pub(crate) sizes: Sizes,
}

/// The name of each node.
const fn name(ip6: bool, tx: bool) -> &'static str {
    match (ip6, tx) {
        (false, false) => "tcp-mss-clamping-ip4-in",
        (false, true) => "tcp-mss-clamping-ip4-out",
        (true, false) => "tcp-mss-clamping-ip6-in",
        (true, true) => "tcp-mss-clamping-ip6-out",
    }
}

impl<const IP6: bool, const TX: bool> Clamping<IP6, TX> {
    /// Where the TCP header is, from the packet's front.
    #[inline(always)]
    fn tcp(pkt: &Packet<'_>) -> Option<usize> {
        // On the way out the link's header is in front already.
        let front =
            if TX { usize::try_from(i32::from(pkt.meta().l3) - i32::from(pkt.current())).ok()? } else { 0 };
        let packet = pkt.data().get(front..)?;
        let transport = if IP6 { Transport::of_ip6(packet)? } else { Transport::of_ip4(packet)? };
        let is_tcp = transport.there && transport.protocol == IpProtocol::TCP;
        is_tcp.then_some(front + transport.offset)
    }

    /// Clamps a packet that is a TCP segment.
    #[inline(always)]
    fn look_at(most: u16, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) {
        if let Some(at) = Self::tcp(pkt) {
            let left = pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD);
            let sum = if left { Sum::LeftToDevice } else { Sum::Whole };
            match clamp(pkt.data_mut().get_mut(at..).unwrap_or_default(), most, sum) {
                Clamped::No => {}
                Clamped::From(from) => {
                    cx.trace(pkt, || Trace { from, to: most });
                    cx.count(Error::Clamped, 1);
                }
                Clamped::Malformed => cx.count(Error::Malformed, 1),
            }
        }
    }
}

impl<const IP6: bool, const TX: bool> PacketNode for Clamping<IP6, TX> {
    const NAME: &'static str = name(IP6, TX);
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let most = self.sizes.get(if TX { pkt.tx() } else { pkt.rx() });
        Self::look_at(most, pkt, cx);
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}

impl<const IP6: bool, const TX: bool> Optional for Clamping<IP6, TX> {
    const NAME: &'static str = <Self as PacketNode>::NAME;
    type Facts<'g> = u16;

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> u16 {
        self.sizes.get(interface)
    }

    #[inline(always)]
    fn pass(&self, most: u16, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Pass {
        Self::look_at(most, pkt, cx);
        Pass::On
    }
}
