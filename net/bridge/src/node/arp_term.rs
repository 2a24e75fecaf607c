//! `arp-term-l2bd`: an ARP request for a station that the domain knows by its address is answered here, and no other
//! station hears of it.
//! l2-input | l2-learn -> **arp-term-l2bd** -> l2-output (the answer) | l2-fwd (one for the BVI) | the next feature, which floods

use std::net::IpAddr;

use shoal_buffer::{Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::process::Sender;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_l2::{Input, InputNext as Next, Path};
use shoal_wire::nd::{NaFlags, NeighborAdvertisement, NeighborSolicitation};
use shoal_wire::{
    ArpHeader, ArpOpcode, EtherType, EthernetHeader, IntoBytes, Ip6Header, IpProtocol, MacAddress,
};

use crate::table::DomainTable;

/// Bytes in front of ICMPv6.
const HEADERS: usize = EthernetHeader::LEN + Ip6Header::LEN;
/// An advertisement with one link-layer address.
const ADVERTISEMENT: usize = HEADERS + NeighborAdvertisement::LEN + 8;
/// The hop limit of neighbour discovery.
const HOP_LIMIT: u8 = 255;
/// How addresses of VRRP begin.
const VRRP: [u8; 4] = [0, 0, 0x5e, 0];

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ARP replies sent
    #[counter("replies_sent")]
    Sent,
    /// ARP replies received
    #[counter("replies_received")]
    Received,
    /// ARP hw addr does not match L2 frame src addr
    #[counter("l2_address_mismatch")]
    Mismatch,
    /// no room for the answer
    NoRoom,
    /// events not told, too many at a time
    #[severity(warn)]
    Untold,
}

/// What was asked or told, for clients that want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpEvent {
    /// Where.
    pub interface: SwIfIndex,
    /// The station's address.
    pub address: IpAddr,
    /// By this station.
    pub mac: MacAddress,
}

/// What `show trace` says.
pub struct Trace {
    opcode: &'static str,
    sender: (MacAddress, IpAddr),
    target: (MacAddress, IpAddr),
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ((from, has), (to, wants)) = (self.sender, self.target);
        write!(f, "{}, type ethernet/IP4, address size 6/4\n{from}/{has} -> {to}/{wants}", self.opcode)
    }
}

/// Answers.
pub struct ArpTerm {
    /// The way through the features.
    pub path: Path,
    /// All domains.
    pub table: DomainTable,
    /// The edge to `l2-fwd`, for answers to the BVI.
    pub forward: Edge,
    /// To the task that tells clients.
    pub heard: Sender<ArpEvent>,
}

impl PacketNode for ArpTerm {
    const NAME: &'static str = "arp-term-l2bd";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let kind = pkt.header::<EthernetHeader>().map(EthernetHeader::ether_type);
        let answered = match kind {
            Some(EtherType::ARP) => self.arp(pkt, cx)?,
            Some(EtherType::IP6) => self.solicitation(pkt, cx)?,
            _ => false,
        };
        if !answered {
            return Ok(self.path.behind(pkt, Input::ArpTerm, cx.guard()).map_or(Next::BitmapDrop, Next::To));
        }
        cx.count(Error::Sent, 1);
        let rx = pkt.rx();
        // By the BVI asks this router itself: the answer goes to it as any other frame.
        if self.path.data(rx, cx.guard()).is_bvi() {
            return Ok(Next::To(self.forward));
        }
        pkt.meta_mut().tx = rx;
        Ok(Next::Output)
    }
}

impl ArpTerm {
    /// Looks at ARP; true when the packet is an answer now.
    fn arp(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<bool, Error> {
        let Some(ethernet) = pkt.header::<EthernetHeader>().copied() else { return Ok(false) };
        let Some(arp) = pkt.header_at::<ArpHeader>(EthernetHeader::LEN).copied() else { return Ok(false) };
        let is_request = arp.opcode() == ArpOpcode::REQUEST;
        cx.trace(pkt, || Trace {
            opcode: if is_request { "request" } else { "reply" },
            sender: (arp.sender_mac(), arp.sender_ip4().into()),
            target: (arp.target_mac(), arp.target_ip4().into()),
        });
        let rx = pkt.rx();
        if !arp.is_valid()
            || pkt.flags().has(Flags::LOCALLY_ORIGINATED)
            || self.path.data(rx, cx.guard()).group() != 0
        {
            return Ok(false);
        }
        let sender = arp.sender_mac();
        if sender != ethernet.src() && !sender.0.starts_with(&VRRP) || sender.is_multicast() {
            return Err(Error::Mismatch);
        }
        self.tell(rx, arp.sender_ip4().into(), sender, cx);
        if !is_request {
            cx.count(Error::Received, 1);
            return Ok(false);
        }
        let domain = self.path.data(rx, cx.guard()).domain();
        let stations = &self.table.domain(domain, cx.guard()).stations;
        let Some(mac) = stations.get(&arp.target_ip4().into()).copied() else { return Ok(false) };
        if arp.is_gratuitous() {
            return Ok(false);
        }
        let mut answer = arp;
        answer.make_reply(mac);
        let ethernet = EthernetHeader::new(mac, ethernet.src(), EtherType::ARP);
        write(pkt, &[ethernet.as_bytes(), answer.as_bytes()]).ok_or(Error::NoRoom)?;
        Ok(true)
    }

    /// Looks at ICMPv6; true when the packet is an answer now.
    fn solicitation(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<bool, Error> {
        let Some(ethernet) = pkt.header::<EthernetHeader>().copied() else { return Ok(false) };
        let Some(ip) = pkt.header_at::<Ip6Header>(EthernetHeader::LEN).copied() else { return Ok(false) };
        let rx = pkt.rx();
        let data = self.path.data(rx, cx.guard());
        if pkt.flags().has(Flags::LOCALLY_ORIGINATED) || data.group() != 0 {
            return Ok(false);
        }
        let message = pkt.data().get(HEADERS..HEADERS + usize::from(ip.payload_length())).unwrap_or_default();
        let Ok((asks, options)) = NeighborSolicitation::check(&ip, message) else { return Ok(false) };
        let Some(asker) = options.source_link_layer() else { return Ok(false) };
        let target = asks.target();
        if asker != ethernet.src() && !asker.0.starts_with(&VRRP) || asker.is_multicast() {
            return Err(Error::Mismatch);
        }
        self.tell(rx, ip.src().into(), asker, cx);
        let stations = &self.table.domain(data.domain(), cx.guard()).stations;
        let Some(mac) = stations.get(&target.into()).copied() else { return Ok(false) };
        let mut out = [0; ADVERTISEMENT];
        let written = advertisement(&mut out, (mac, target), (ethernet.src(), ip.src()));
        write(pkt, &[&out]).and(written).ok_or(Error::NoRoom)?;
        Ok(true)
    }

    fn tell(&self, interface: SwIfIndex, address: IpAddr, mac: MacAddress, cx: &Cx<'_, Self>) {
        if self.table.tells_asked()
            && !address.is_unspecified()
            && self.heard.try_send(ArpEvent { interface, address, mac }).is_err()
        {
            cx.count(Error::Untold, 1);
        }
    }
}

/// "I have this address", from a station of the domain to the asking one.
fn advertisement(
    out: &mut [u8; ADVERTISEMENT],
    (mac, target): (MacAddress, std::net::Ipv6Addr),
    (to_mac, to): (MacAddress, std::net::Ipv6Addr),
) -> Option<()> {
    let flags = NaFlags::SOLICITED | NaFlags::OVERRIDE;
    let message = NeighborAdvertisement::new(target, flags).write(out.get_mut(HEADERS..)?);
    let len = message.target_link_layer(mac).finish(target, to)?;
    let ethernet = EthernetHeader::new(mac, to_mac, EtherType::IP6);
    let ip = Ip6Header::new(target, to, IpProtocol::ICMP6, HOP_LIMIT, len as u16);
    out.get_mut(..EthernetHeader::LEN)?.copy_from_slice(ethernet.as_bytes());
    out.get_mut(EthernetHeader::LEN..HEADERS)?.copy_from_slice(ip.as_bytes());
    Some(())
}

/// Makes a packet consist of these bytes; padding of a short frame stays.
fn write(pkt: &mut Packet<'_>, parts: &[&[u8]]) -> Option<()> {
    let mut bytes = [0; ADVERTISEMENT];
    let mut at = 0;
    for part in parts {
        bytes.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    if at <= pkt.segment_len() && !pkt.is_chained() && parts.len() > 1 {
        pkt.data_mut().get_mut(..at)?.copy_from_slice(bytes.get(..at)?);
        return Some(());
    }
    pkt.set_data(bytes.get(..at)?)
}
