//! `arp-input`: believe an ARP packet or not, learn who sent it, answer if we are asked. RFC 826, RFC 5227.
//! ethernet-input -> **arp-input** -> arp-reply | arp-proxy | features of `arp` | drop

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_neighbor::throttle::Throttle;
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, EthernetHeader};

use crate::control::ProxyTable;
use crate::counters::{ArpCounters, Kind};
use crate::message::{Fact, Learn};
use crate::subnet::{Place, Subnets};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// We are asked.
    #[node("arp-reply")]
    Reply,
    /// Somebody else is asked, on an interface that answers for others.
    #[node("arp-proxy")]
    Proxy,
    /// It has been understood; there is nothing to answer.
    #[node("drop")]
    Done,
    /// It is an answer that somebody else waits for, too.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted. Names and texts are VPP's where it has one.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ARP packet is cut short
    TooShort,
    /// L2 type not ethernet
    #[counter("l2_type_not_ethernet")]
    L2Type,
    /// L3 type not IP4
    #[counter("l3_type_not_ip4")]
    L3Type,
    /// ARP address sizes are not 6 and 4
    AddressSizes,
    /// ARP opcode not request
    #[counter("opcode_not_request")]
    Opcode,
    /// Interface is not IP enabled
    #[counter("interface_not_ip_enabled")]
    NotEnabled,
    /// ARP sender hardware address is not one station's
    SenderIsGroup,
    /// ARP hw addr does not match L2 frame src addr
    #[counter("l2_address_mismatch")]
    L2Mismatch,
    /// IP4 source address matches local interface
    #[counter("l3_src_address_is_local")]
    SourceIsLocal,
    /// IP4 source address not local to subnet
    #[counter("l3_src_address_not_local")]
    SourceElsewhere,
    /// IP4 destination address not local to subnet
    #[counter("l3_dst_address_not_local")]
    TargetElsewhere,
    /// IP4 destination address is unset
    #[counter("l3_dst_address_unset")]
    TargetUnset,
    /// ARP probe or announcement dropped
    #[counter("gratuitous_arp")]
    #[severity(info)]
    Gratuitous,
    /// ARP replies received
    #[severity(info)]
    RepliesReceived,
    /// ARP request IP4 source address learned
    #[counter("l3_src_address_learned")]
    #[severity(info)]
    Learned,
    /// ARP senders not learned, too many at a time
    #[severity(warn)]
    LearnCongested,
}

/// What `show trace` says: the packet.
pub struct Trace(ArpHeader);

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// In this time and thread a fact that is known is passed on once, so that it does not age, and one that is not a
/// few times: the table may refuse it, and somebody may say it a thousand times.
const SAME_FACT: Duration = Duration::from_millis(100);
const NEWS: u32 = 16;

/// Looks at ARP packets.
pub(crate) struct ArpInput {
    subnets: Subnets,
    counters: ArpCounters,
    learn: Sender<Fact>,
    told: Throttle,
    proxy: ProxyTable,
    /// Features of answers to this router.
    arc: FeatureArc,
}

impl ArpInput {
    pub(crate) fn new(
        subnets: Subnets,
        counters: ArpCounters,
        learn: Sender<Fact>,
        proxy: ProxyTable,
        arc: FeatureArc,
    ) -> Self {
        ArpInput { subnets, counters, learn, told: Throttle::new(SAME_FACT), proxy, arc }
    }

    /// Passes on who has which address, unless it was passed on often enough just now.
    fn learn(&self, rx: SwIfIndex, arp: &ArpHeader, cx: &Cx<'_, Self>) {
        let (address, mac) = (arp.sender_ip4(), arp.sender_mac());
        let kind = kind_of(arp);
        let who = u64::from(rx.0) << 32 | u64::from(address.to_bits());
        let fact = who ^ mac.to_u64().wrapping_mul(0xd6e8_feb8_6659_fd93) ^ kind as u64;
        let known = self.subnets.is_known(rx, address.to_bits(), mac, cx.guard());
        if self.told.hit(cx.thread(), fact, cx.now()) >= if known { 1 } else { NEWS } {
            return;
        }
        let counter = match self.learn.try_send(Fact::Said(Learn { interface: rx, address, mac, kind })) {
            Ok(()) => Error::Learned,
            Err(_) => Error::LearnCongested,
        };
        cx.count(counter, 1);
    }

    /// The sender's addresses make sense, and it is where it says.
    fn check_sender(&self, rx: SwIfIndex, arp: &ArpHeader, cx: &Cx<'_, Self>) -> Result<(), Error> {
        match self.subnets.place(rx, arp.sender_ip4().to_bits(), cx.guard()) {
            Place::Connected => Ok(()),
            Place::Local => Err(Error::SourceIsLocal),
            Place::Elsewhere => Err(Error::SourceElsewhere),
        }
    }
}

fn kind_of(arp: &ArpHeader) -> Kind {
    match arp.opcode() {
        _ if arp.is_gratuitous() => Kind::Gratuitous,
        ArpOpcode::REQUEST => Kind::Request,
        _ => Kind::Reply,
    }
}

/// The fields that make it ARP for IPv4 over Ethernet.
fn check_form(pkt: &Packet<'_>) -> Result<ArpHeader, Error> {
    let arp = *pkt.header::<ArpHeader>().ok_or(Error::TooShort)?;
    let [l2_type, l3_type] = match pkt.data() {
        [a, b, c, d, ..] => [[*a, *b], [*c, *d]].map(u16::from_be_bytes),
        _ => return Err(Error::TooShort),
    };
    if l2_type != ArpHeader::L2_TYPE_ETHERNET {
        return Err(Error::L2Type);
    }
    if l3_type != EtherType::IP4.0 {
        return Err(Error::L3Type);
    }
    if !arp.is_valid() {
        return Err(Error::AddressSizes);
    }
    if !matches!(arp.opcode(), ArpOpcode::REQUEST | ArpOpcode::REPLY) {
        return Err(Error::Opcode);
    }
    let mac = arp.sender_mac();
    if mac.is_multicast() || mac.is_zero() {
        return Err(Error::SenderIsGroup);
    }
    Ok(arp)
}

/// The frame came from the station that is said to speak.
fn check_frame(pkt: &mut Packet<'_>, arp: &ArpHeader) -> Result<(), Error> {
    // ethernet-input has just moved the front past the header, so it still lies there.
    pkt.push(EthernetHeader::LEN).ok_or(Error::TooShort)?;
    let same = pkt.header::<EthernetHeader>().is_some_and(|e| e.src() == arp.sender_mac());
    pkt.pull(EthernetHeader::LEN).ok_or(Error::TooShort)?;
    if same { Ok(()) } else { Err(Error::L2Mismatch) }
}

impl PacketNode for ArpInput {
    const NAME: &'static str = "arp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        if let Some(arp) = pkt.header::<ArpHeader>() {
            cx.trace(pkt, || Trace(*arp));
        }
        let arp = check_form(pkt)?;
        self.counters.count_rx(kind_of(&arp), cx.thread(), rx);
        if !self.subnets.interfaces.get(rx, cx.guard()).flags().has(IfFlags::IP4) {
            return Err(Error::NotEnabled);
        }
        check_frame(pkt, &arp)?;
        if arp.target_ip4().is_unspecified() {
            return Err(Error::TargetUnset);
        }
        let asked = self.subnets.place(rx, arp.target_ip4().to_bits(), cx.guard());
        let for_us = asked == Place::Local;
        if arp.sender_ip4() == Ipv4Addr::UNSPECIFIED {
            // RFC 5227 section 2.1.1: somebody asks whether an address is free. One of ours is not.
            let probe = arp.opcode() == ArpOpcode::REQUEST && for_us;
            return if probe { Ok(Next::Reply) } else { Err(Error::Gratuitous) };
        }
        self.check_sender(rx, &arp, cx)?;
        if arp.is_gratuitous() {
            self.learn(rx, &arp, cx);
            cx.count(Error::Gratuitous, 1);
            return Ok(Next::Done);
        }
        if !for_us {
            // RFC 1027, 2.3: whoever is on the asking link answers for himself.
            let other = asked == Place::Elsewhere && arp.opcode() == ArpOpcode::REQUEST;
            if !other || !self.proxy.is_on(rx, cx.guard()) {
                return Err(Error::TargetElsewhere);
            }
            // It is about to send packets through us, so we may have some for it.
            self.learn(rx, &arp, cx);
            return Ok(Next::Proxy);
        }
        self.learn(rx, &arp, cx);
        if arp.opcode() == ArpOpcode::REPLY {
            cx.count(Error::RepliesReceived, 1);
            return Ok(cx.start_arc(&self.arc, rx, pkt).map_or(Next::Done, Next::Feature));
        }
        Ok(Next::Reply)
    }
}
