//! What the nodes for received messages share: the headers in front, who may say what, telling it once.

use std::hash::{Hash, Hasher};
use std::net::Ipv6Addr;
use std::time::Duration;

use shoal_buffer::Packet;
use shoal_graph::clock::Time;
use shoal_graph::process::Sender;
use shoal_infra::Guard;
use shoal_interface::{IfFlags, IfTable, SwIfIndex};
use shoal_neighbor::throttle::Throttle;
use shoal_wire::nd::NdInvalid;
use shoal_wire::{EthernetHeader, Ip6Header, MacAddress};

use crate::counters::NdCounters;
use crate::fact::Fact;
use crate::{Link, Links};

/// A fact is passed on a few times in this time and thread: somebody may say it a thousand times.
const SAME_FACT: Duration = Duration::from_millis(100);
const EVENT_QUEUE_LEN: u32 = 4;

/// What every message is looked at with.
#[derive(Clone)]
pub(crate) struct ReceiveContext {
    pub(crate) interfaces: IfTable,
    pub(crate) links: Links,
    pub(crate) counters: NdCounters,
    pub(crate) tell: Sender<Fact>,
}

/// Why a message is not believed. Its counters are each node's own, under the same names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rejection {
    TooShort,
    NotEthernet,
    NotEnabled,
    Rule(NdInvalid),
    OptionIsGroup,
}

/// The headers of a message.
#[derive(Clone, Copy)]
pub(crate) struct Headers {
    pub(crate) ip: Ip6Header,
    pub(crate) from_mac: MacAddress,
    /// Bytes of the ICMPv6 message; they lie in one piece.
    pub(crate) len: usize,
}

impl Headers {
    /// Reads the headers of a packet as `ip6-icmp-input` hands it on, and moves its front past them, to the message.
    pub(crate) fn of(pkt: &mut Packet<'_>) -> Option<Headers> {
        let before = usize::try_from(i32::from(pkt.meta().l4) - i32::from(pkt.current())).ok()?;
        let ip = *pkt.header::<Ip6Header>().filter(|_| before >= Ip6Header::LEN)?;
        // ethernet-input has moved the front past its header, which still lies there.
        pkt.push(EthernetHeader::LEN)?;
        let from_mac = pkt.header::<EthernetHeader>().map(EthernetHeader::src);
        pkt.pull(EthernetHeader::LEN + before)?;
        let len = (Ip6Header::LEN + usize::from(ip.payload_length())).checked_sub(before)?;
        (len <= pkt.segment_len()).then_some(Headers { ip, from_mac: from_mac?, len })
    }

    /// The message.
    pub(crate) fn message<'a>(&self, pkt: &'a Packet<'_>) -> &'a [u8] {
        pkt.data().get(..self.len).unwrap_or_default()
    }
}

/// Whether a link-layer address is one station's. It need not be the frame's source: bonds and virtual routers speak
/// with one address and receive with another, and RFC 4861 asks for nothing else.
pub(crate) fn check_mac(option: Option<MacAddress>) -> Result<(), Rejection> {
    match option {
        Some(mac) if mac.is_multicast() || mac.is_zero() => Err(Rejection::OptionIsGroup),
        _ => Ok(()),
    }
}

impl ReceiveContext {
    /// This router on the link a packet came from, and its station's address there.
    pub(crate) fn link<'g>(
        &'g self,
        rx: SwIfIndex,
        guard: Guard<'g>,
    ) -> Result<(&'g Link, MacAddress), Rejection> {
        let data = self.interfaces.get(rx, guard);
        if !data.flags().has(IfFlags::ETHERNET) {
            return Err(Rejection::NotEthernet);
        }
        Ok((self.links.get(rx, guard).ok_or(Rejection::NotEnabled)?, data.mac()))
    }
}

/// A node's memory of what it has told.
pub(crate) struct ReportThrottle(Throttle);

impl ReportThrottle {
    pub(crate) fn new() -> Self {
        ReportThrottle(Throttle::new(SAME_FACT))
    }

    /// Passes a fact on unless that was done often enough just now; `Some` tells whether there was room.
    pub(crate) fn tell(
        &self,
        eyes: &ReceiveContext,
        fact: Fact,
        about: impl Hash,
        thread: usize,
        now: Time,
    ) -> Option<bool> {
        let mut hasher = Fold(0);
        about.hash(&mut hasher);
        if self.0.hit(thread, hasher.finish(), now) >= EVENT_QUEUE_LEN {
            return None;
        }
        Some(eyes.tell.try_send(fact).is_ok())
    }
}

/// A neighbour as the throttles' key.
pub(crate) fn key(interface: SwIfIndex, address: Ipv6Addr) -> u64 {
    let mut hasher = Fold(0);
    (interface.0, address.to_bits()).hash(&mut hasher);
    hasher.finish()
}

/// A quick hash: the throttle mixes it with the time, so that no sender can make keys collide for long.
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 29;
        }
    }
}

/// Gives a node's errors the counters for what every message may do wrong.
macro_rules! wrong {
    ($error:ident) => {
        impl From<$crate::node::receive::Rejection> for $error {
            fn from(wrong: $crate::node::receive::Rejection) -> Self {
                use shoal_wire::nd::NdInvalid;
                use $crate::node::receive::Rejection;
                match wrong {
                    Rejection::TooShort | Rejection::Rule(NdInvalid::Length) => $error::TooShort,
                    Rejection::NotEthernet => $error::NotEthernet,
                    Rejection::NotEnabled => $error::NotEnabled,
                    Rejection::Rule(NdInvalid::HopLimit) => $error::HopLimit,
                    Rejection::Rule(NdInvalid::Options) | Rejection::OptionIsGroup => $error::Options,
                    Rejection::Rule(_) => $error::Invalid,
                }
            }
        }

        impl From<shoal_wire::nd::NdInvalid> for $error {
            fn from(rule: shoal_wire::nd::NdInvalid) -> Self {
                $crate::node::receive::Rejection::Rule(rule).into()
            }
        }
    };
}

pub(crate) use wrong;
