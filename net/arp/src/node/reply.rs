//! `arp-reply`: believe an ARP packet or not, learn who sent it, answer if we are asked. RFC 826, RFC 5227.
//! arp-input -> **arp-reply** -> interface-output | arp-proxy | features of `arp` | drop

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_neighbor::throttle::Throttle;
use shoal_wire::{ArpHeader, ArpOpcode, EthernetHeader};

use super::answer::Answer;
pub use super::error::Error;
use super::input::kind_of;
use crate::control::ProxyTable;
use crate::message::{Fact, Learn};
use crate::subnet::{Place, Subnets};
use crate::virtual_addresses::VirtualTable;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The reply, back out of the interface the request came in by.
    #[node("interface-output")]
    Output,
    /// Somebody else is asked, on an interface that answers for others.
    #[node("arp-proxy")]
    Proxy,
    /// It has been understood; there is nothing to answer.
    #[node("drop")]
    Done,
    /// It is an answer that somebody else waits for, too.
    Feature(Edge),
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("who has {target}? from {sender} on sw_if_index {rx}")]
pub struct Trace {
    target: Ipv4Addr,
    sender: Ipv4Addr,
    rx: u32,
}

/// In this time and thread a fact that is known is passed on once, so that it does not age, and one that is not a
/// few times: the table may refuse it, and somebody may say it a thousand times.
const SAME_FACT: Duration = Duration::from_millis(100);
const EVENT_QUEUE_LEN: u32 = 16;

/// RFC 9568 7.3: MAC addresses of IPv4 virtual routers begin so.
const VIRTUAL_ROUTER: [u8; 5] = [0, 0, 0x5e, 0, 1];

/// Believes, learns and answers.
pub(crate) struct ArpReply {
    subnets: Subnets,
    answer: Answer,
    learn: Sender<Fact>,
    told: Throttle,
    proxy: ProxyTable,
    virtual_addresses: VirtualTable,
    /// Features of answers to this router.
    arc: FeatureArc,
}

/// What becomes of a packet that is believed.
enum Verdict {
    Answer,
    Proxy,
    Heard,
    Announced,
}

impl ArpReply {
    pub(crate) fn new(
        subnets: Subnets,
        answer: Answer,
        learn: Sender<Fact>,
        (proxy, virtual_addresses): (ProxyTable, VirtualTable),
        arc: FeatureArc,
    ) -> Self {
        ArpReply { subnets, answer, learn, told: Throttle::new(SAME_FACT), proxy, virtual_addresses, arc }
    }

    /// Reports the sender's addresses, unless that was done often enough just now.
    fn learn(&self, rx: SwIfIndex, arp: &ArpHeader, cx: &Cx<'_, Self>) {
        let (address, mac) = (arp.sender_ip4(), arp.sender_mac());
        let kind = kind_of(arp);
        let who = u64::from(rx.0) << 32 | u64::from(address.to_bits());
        let fact = who ^ mac.to_u64().wrapping_mul(0xd6e8_feb8_6659_fd93) ^ kind as u64;
        let known = self.subnets.is_known(rx, address.to_bits(), mac, cx.guard());
        if self.told.hit(cx.thread(), fact, cx.now()) >= if known { 1 } else { EVENT_QUEUE_LEN } {
            return;
        }
        let counter = match self.learn.try_send(Fact::Said(Learn { interface: rx, address, mac, kind })) {
            Ok(()) => Error::Learned,
            Err(_) => Error::LearnCongested,
        };
        cx.count(counter, 1);
    }

    /// Passes on that a station has an address of this router: somebody may have asked for that.
    fn claimed(&self, rx: SwIfIndex, arp: &ArpHeader, cx: &Cx<'_, Self>) {
        let (address, mac, kind) = (arp.sender_ip4(), arp.sender_mac(), kind_of(arp));
        let who = u64::from(rx.0) << 32 | u64::from(address.to_bits());
        if self.told.hit(cx.thread(), who ^ mac.to_u64(), cx.now()) == 0 {
            // A full channel: the claim comes again if it matters.
            let _ = self.learn.try_send(Fact::Claimed(Learn { interface: rx, address, mac, kind }));
        }
    }

    /// Sender and target. The order of the checks is VPP's: it decides which counter a packet with two faults is under.
    fn judge(
        &self,
        rx: SwIfIndex,
        arp: &ArpHeader,
        from_speaker: bool,
        cx: &Cx<'_, Self>,
    ) -> Result<Verdict, Error> {
        let guard = cx.guard();
        let request = arp.opcode() == ArpOpcode::REQUEST;
        // RFC 9568 8.1.2: the active router of a virtual address answers for it as if it were its own.
        let target = match self.virtual_addresses.mac(rx, arp.target_ip4(), guard) {
            Some(_) => Place::Local,
            None => self.subnets.place(rx, arp.target_ip4().to_bits(), guard),
        };
        let for_us = target == Place::Local;
        if arp.sender_ip4().is_unspecified() {
            // RFC 5227 section 2.1.1: somebody asks whether an address is free. One of ours is not.
            let ours = request && for_us && from_speaker;
            return if ours { Ok(Verdict::Answer) } else { Err(Error::Gratuitous) };
        }
        // RFC 1027, 2.3: a station on the asking link answers for itself.
        let other = request && matches!(target, Place::Elsewhere | Place::Lent) && !arp.is_gratuitous();
        let proxied = other && self.proxy.is_on(rx, guard);
        if target == Place::Elsewhere && !proxied {
            return Err(Error::TargetElsewhere);
        }
        let sender = self.subnets.place(rx, arp.sender_ip4().to_bits(), guard);
        let loose =
            sender == Place::Elsewhere && self.subnets.is_stray(rx, arp.sender_ip4().to_bits(), guard);
        match sender {
            // A host that shares an address with this router asks for others by an interface of its own.
            Place::Local if proxied && from_speaker => return Ok(Verdict::Proxy),
            Place::Local => {
                self.claimed(rx, arp, cx);
                return Err(Error::SourceIsLocal);
            }
            Place::Elsewhere if !loose => return Err(Error::SourceElsewhere),
            _ => {}
        }
        // A virtual router's reply names the address it shares with others, not its own.
        if !from_speaker && (request || !arp.sender_mac().0.starts_with(&VIRTUAL_ROUTER)) {
            return Err(Error::L2Mismatch);
        }
        if arp.is_gratuitous() {
            if !loose {
                self.learn(rx, arp, cx);
            }
            return Ok(Verdict::Announced);
        }
        if !for_us && !proxied {
            return Err(Error::TargetElsewhere);
        }
        // It is about to send packets through us, so we may have some for it.
        if !loose {
            self.learn(rx, arp, cx);
        }
        Ok(match request {
            true if for_us => Verdict::Answer,
            true => Verdict::Proxy,
            false => Verdict::Heard,
        })
    }
}

/// Whether the frame came from the station that its ARP header names.
fn from_speaker(pkt: &mut Packet<'_>, arp: &ArpHeader) -> Result<bool, Error> {
    // ethernet-input has just moved the front past the header, so it still lies there, in front of any tag.
    pkt.push(EthernetHeader::LEN).ok_or(Error::TooShort)?;
    let same = pkt.header::<EthernetHeader>().is_some_and(|e| e.src() == arp.sender_mac());
    pkt.pull(EthernetHeader::LEN).ok_or(Error::TooShort)?;
    Ok(same)
}

impl PacketNode for ArpReply {
    const NAME: &'static str = "arp-reply";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let arp = *pkt.header::<ArpHeader>().ok_or(Error::TooShort)?;
        cx.trace(pkt, || Trace { target: arp.target_ip4(), sender: arp.sender_ip4(), rx: rx.0 });
        let from_speaker = from_speaker(pkt, &arp)?;
        match self.judge(rx, &arp, from_speaker, cx)? {
            Verdict::Answer => {
                let mac = self.virtual_addresses.mac(rx, arp.target_ip4(), cx.guard());
                self.answer.write(pkt, mac, cx.thread(), cx.guard())?;
                cx.count(Error::RepliesSent, 1);
                Ok(Next::Output)
            }
            Verdict::Proxy => Ok(Next::Proxy),
            Verdict::Announced => {
                cx.count(Error::Gratuitous, 1);
                Ok(Next::Done)
            }
            Verdict::Heard => {
                cx.count(Error::RepliesReceived, 1);
                Ok(cx.start_arc(&self.arc, rx, pkt).map_or(Next::Done, Next::Feature))
            }
        }
    }
}
