//! `linux-cp-ip4-local`, `linux-cp-ip6-local`, `linux-cp-ip4-mcast`, `linux-cp-ip6-mcast`, `linux-cp-punt-ip4`, `linux-cp-punt-ip6`,
//! `linux-cp-arp-phy`: packets the kernel is to see, out of the interface that is its image of where they came in.
//! an arc -> **`linux-cp-...`** -> interface-output | the next feature
//!
//! A frame node, because a packet that both want becomes two.

use shoal_buffer::{Buffer, Flags, Frame, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_infra::Guard;
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip4Header, Ip6Header, MacAddress};

use super::packet_owner::{Decide, PacketOwner};
use crate::peers::Peers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To the kernel.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// packets given to the host
    #[severity(info)]
    ToHost,
    /// packets shown to the host
    #[severity(info)]
    Shown,
    /// no buffer for the host's copy
    NoBuffer,
    /// no headroom for the host's header
    NoHeadroom,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("linux-cp: rx {rx} host {host} {whose}")]
struct Trace {
    rx: u32,
    host: u32,
    whose: &'static str,
}

/// Shows packets of one arc to the kernel.
pub(crate) struct ToHost<D> {
    pub peers: Peers,
    pub interfaces: IfTable,
    pub decide: D,
}

/// The Ethernet address of a packet's group, if it is to one.
fn group(pkt: &Packet<'_>, kind: EtherType) -> Option<MacAddress> {
    match kind {
        EtherType::IP4 => {
            let dst = pkt.header::<Ip4Header>()?.dst();
            dst.is_multicast().then(|| MacAddress::for_ip4_multicast(dst))
        }
        EtherType::IP6 => {
            let dst = pkt.header::<Ip6Header>()?.dst();
            dst.is_multicast().then(|| MacAddress::for_ip6_multicast(dst))
        }
        _ => None,
    }
}

impl<D: Decide> ToHost<D> {
    /// The header a packet was received behind, if it still lies there: a packet that was put together has none.
    fn received(&self, pkt: &mut Packet<'_>, phy: SwIfIndex, guard: Guard<'_>) -> Option<EthernetHeader> {
        let own = self.interfaces.get(phy, guard).mac();
        pkt.push(EthernetHeader::LEN)?;
        let header = pkt.header::<EthernetHeader>().copied();
        pkt.pull(EthernetHeader::LEN)?;
        let is_ours = |h: &EthernetHeader| h.dst() == own || h.dst().is_multicast();
        header.filter(|h| h.ether_type() == D::TYPE && is_ours(h) && !h.src().is_multicast())
    }

    /// Puts the header in front that the packet was received behind, or else one of the link between router and kernel.
    fn address(
        &self,
        pkt: &mut Packet<'_>,
        (phy, host): (SwIfIndex, SwIfIndex),
        received: Option<EthernetHeader>,
        guard: Guard<'_>,
    ) -> Result<(), Error> {
        let data = self.interfaces.get(host, guard);
        if !data.flags().has(IfFlags::ETHERNET) {
            pkt.meta_mut().tx = host;
            return Ok(());
        }
        let own = self.interfaces.get(phy, guard).mac();
        let dst = group(pkt, D::TYPE).unwrap_or(own);
        let mut header = received.unwrap_or_else(|| EthernetHeader::new(data.mac(), dst, D::TYPE));
        // A VLAN of Linux may have an address of its own.
        if let Some(mac) = self.peers.mac(phy).filter(|_| !header.dst().is_multicast()) {
            header = EthernetHeader::new(header.src(), mac, D::TYPE);
        }
        pkt.push(EthernetHeader::LEN).ok_or(Error::NoHeadroom)?;
        let front = pkt.data_mut().get_mut(..EthernetHeader::LEN).ok_or(Error::NoHeadroom)?;
        front.copy_from_slice(header.as_bytes());
        self.peers.tag(&self.interfaces, (phy, host), pkt, guard).ok_or(Error::NoHeadroom)?;
        let meta = pkt.meta_mut();
        meta.tx = host;
        meta.flags = meta.flags.without(Flags::LINK_MULTICAST);
        Ok(())
    }

    fn show(
        &self,
        pkt: &Packet<'_>,
        pair: (SwIfIndex, SwIfIndex),
        received: Option<EthernetHeader>,
        cx: &mut FrameCx<'_>,
    ) {
        let guard = cx.guard();
        let Ok(mut buffer) = cx.cache().copy(pkt) else {
            cx.count(Error::NoBuffer, 1);
            return;
        };
        let mut copy = cx.cache().packet(&mut buffer);
        copy.meta_mut().share_trace(pkt.meta());
        match self.address(&mut copy, pair, received, guard) {
            Ok(()) => {
                cx.count(Error::Shown, 1);
                cx.send(Next::Output.edge(), buffer);
            }
            Err(why) => cx.drop(buffer, why),
        }
    }

    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let guard = cx.guard();
        let mut pkt = cx.cache().packet(&mut buffer);
        let rx = pkt.rx();
        let Some(host) = self.peers.of(rx) else {
            let edge = cx.next_feature(&mut pkt);
            cx.send(edge, buffer);
            return;
        };
        // Linux asks for no neighbours on an interface without Ethernet.
        let frames =
            D::TYPE != EtherType::ARP || self.interfaces.get(host, guard).flags().has(IfFlags::ETHERNET);
        let whose = if frames { self.decide.whose(&pkt, cx) } else { PacketOwner::Ours };
        cx.trace(&pkt, || Trace {
            rx: rx.0,
            host: host.0,
            whose: match whose {
                PacketOwner::Ours => "not for the host",
                PacketOwner::Host => "for the host",
                PacketOwner::Both => "shown to the host",
            },
        });
        let received = if whose == PacketOwner::Ours { None } else { self.received(&mut pkt, rx, guard) };
        if whose == PacketOwner::Host {
            match self.address(&mut pkt, (rx, host), received, guard) {
                Ok(()) => {
                    cx.count(Error::ToHost, 1);
                    cx.send(Next::Output.edge(), buffer);
                }
                Err(why) => cx.drop(buffer, why),
            }
            return;
        }
        if whose == PacketOwner::Both {
            self.show(&pkt, (rx, host), received, cx);
        }
        let edge = cx.next_feature(&mut pkt);
        cx.send(edge, buffer);
    }
}

impl<D: Decide> FrameNode for ToHost<D> {
    const NAME: &'static str = D::NAME;
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        for buffer in frame.drain() {
            self.one(buffer, cx);
        }
    }
}
