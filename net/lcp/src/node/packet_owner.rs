//! Which packets are the kernel's.

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_graph::FrameCx;
use shoal_ip::Listeners;
use shoal_wire::ip6_ext::Ip6ExtHeaders;
use shoal_wire::{EtherType, Icmp4Type, Icmp6Type, Ip4Header, IpProtocol, UdpHeader};

/// Whose a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketOwner {
    /// This router's.
    Ours,
    /// The kernel's.
    Host,
    /// Both want to see it.
    Both,
}

/// Decides about the packets of one arc.
pub(crate) trait Decide: Send + Sync + 'static {
    const NAME: &'static str;
    const TYPE: EtherType;
    fn whose(&self, pkt: &Packet<'_>, cx: &FrameCx<'_>) -> PacketOwner;
}

/// By the table of those who listen here.
fn by_listener(listeners: &Listeners, protocol: IpProtocol, pkt: &Packet<'_>, at: usize) -> PacketOwner {
    let taken = match protocol {
        IpProtocol::UDP => match pkt.header_at::<UdpHeader>(at) {
            Some(udp) => listeners.keeps_udp(udp.dst_port(), pkt.rx()),
            None => true,
        },
        // Both speak IGMP: the router for its own programs, Linux for its own, or a routing daemon for a link.
        IpProtocol::IGMP if listeners.protocol(protocol).is_some() => return PacketOwner::Both,
        other => listeners.protocol(other).is_some(),
    };
    if taken { PacketOwner::Ours } else { PacketOwner::Host }
}

/// `linux-cp-ip4-local`: packets without a listener here; of ICMP all but echo requests, which this router answers.
pub(crate) struct Ip4Local(pub Arc<Listeners>);

impl Decide for Ip4Local {
    const NAME: &'static str = "linux-cp-ip4-local";
    const TYPE: EtherType = EtherType::IP4;

    fn whose(&self, pkt: &Packet<'_>, _: &FrameCx<'_>) -> PacketOwner {
        let Some(ip) = pkt.header::<Ip4Header>() else { return PacketOwner::Ours };
        let header = ip.header_len();
        match ip.protocol() {
            IpProtocol::ICMP => match pkt.data().get(header) {
                None => PacketOwner::Ours,
                Some(kind) if *kind == Icmp4Type::ECHO_REQUEST.0 => PacketOwner::Ours,
                Some(_) => PacketOwner::Both,
            },
            protocol => by_listener(&self.0, protocol, pkt, header),
        }
    }
}

/// Whether a message of ICMPv6 is answered here and would be answered twice.
fn is_answered_here(kind: u8) -> bool {
    [
        Icmp6Type::ECHO_REQUEST,
        Icmp6Type::NEIGHBOR_SOLICITATION,
        Icmp6Type::ROUTER_SOLICITATION,
        Icmp6Type::MULTICAST_LISTENER_QUERY,
    ]
    .iter()
    .any(|answered| answered.0 == kind)
}

/// The upper layer: which, and where it begins.
pub(super) fn upper(pkt: &Packet<'_>) -> Option<(IpProtocol, usize)> {
    let mut headers = Ip6ExtHeaders::of_packet(pkt.data())?;
    headers.by_ref().all(|header| header.is_ok()).then(|| (headers.protocol(), headers.offset()))
}

/// `linux-cp-ip6-local`: the same of IPv6.
pub(crate) struct Ip6Local(pub Arc<Listeners>);

impl Decide for Ip6Local {
    const NAME: &'static str = "linux-cp-ip6-local";
    const TYPE: EtherType = EtherType::IP6;

    fn whose(&self, pkt: &Packet<'_>, _: &FrameCx<'_>) -> PacketOwner {
        match upper(pkt) {
            None => PacketOwner::Ours,
            Some((IpProtocol::ICMP6, at)) => match pkt.data().get(at) {
                Some(kind) if !is_answered_here(*kind) => PacketOwner::Both,
                _ => PacketOwner::Ours,
            },
            Some((protocol, at)) => by_listener(&self.0, protocol, pkt, at),
        }
    }
}

/// `linux-cp-punt-ip4`: whatever is punted.
pub(crate) struct Ip4Punt;

impl Decide for Ip4Punt {
    const NAME: &'static str = "linux-cp-punt-ip4";
    const TYPE: EtherType = EtherType::IP4;

    fn whose(&self, _: &Packet<'_>, _: &FrameCx<'_>) -> PacketOwner {
        PacketOwner::Host
    }
}

/// `linux-cp-punt-ip6`: whatever is punted.
pub(crate) struct Ip6Punt;

impl Decide for Ip6Punt {
    const NAME: &'static str = "linux-cp-punt-ip6";
    const TYPE: EtherType = EtherType::IP6;

    fn whose(&self, _: &Packet<'_>, _: &FrameCx<'_>) -> PacketOwner {
        PacketOwner::Host
    }
}

/// `linux-cp-arp-phy`: answers to requests, which may have been the kernel's.
pub(crate) struct ArpReplies;

impl Decide for ArpReplies {
    const NAME: &'static str = "linux-cp-arp-phy";
    const TYPE: EtherType = EtherType::ARP;

    fn whose(&self, _: &Packet<'_>, _: &FrameCx<'_>) -> PacketOwner {
        PacketOwner::Host
    }
}
