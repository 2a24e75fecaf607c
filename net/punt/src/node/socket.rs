//! `ip4-udp-punt-socket` and its like: packets for clients' sockets go to the main thread by a bounded queue.
//! ip4-local | punt-dispatch -> **ip4-udp-punt-socket** -> the main thread sends them
//!
//! A frame node, because it keeps packets. It never waits: what the queue has no room for is dropped and counted.

use shoal_adj::Family;
use shoal_buffer::{Buffer, Frame, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::process::Sender;
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip4Header, Ip6Header, Transport};

use crate::reasons::PuntReason;
use crate::sockets::PuntClass;

/// A packet for a client.
pub(crate) struct Item {
    pub what: PuntClass,
    pub buffer: Buffer,
}

/// What is counted here. The main thread counts what became of packets it took.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// Socket TX
    #[counter("socket_tx")]
    #[severity(info)]
    Tx,
    /// Socket TX error
    #[counter("socket_tx_error")]
    Failed,
    /// punted packets for sockets, too many at a time
    #[counter("congested")]
    Congested,
}

/// What packets of a node are known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PuntKey {
    /// Their destination port.
    Port(Family),
    /// Their protocol.
    Protocol(Family),
    /// Why they are punted.
    Reason,
}

impl PuntKey {
    pub const ALL: [PuntKey; 5] = [
        PuntKey::Port(Family::Ip4),
        PuntKey::Port(Family::Ip6),
        PuntKey::Protocol(Family::Ip4),
        PuntKey::Protocol(Family::Ip6),
        PuntKey::Reason,
    ];

    /// The node's name.
    pub const fn node(self) -> &'static str {
        match self {
            PuntKey::Port(Family::Ip4) => "ip4-udp-punt-socket",
            PuntKey::Port(Family::Ip6) => "ip6-udp-punt-socket",
            PuntKey::Protocol(Family::Ip4) => "ip4-proto-punt-socket",
            PuntKey::Protocol(Family::Ip6) => "ip6-proto-punt-socket",
            PuntKey::Reason => "exception-punt-socket",
        }
    }

    /// Which packets these are of all.
    pub fn of(what: PuntClass) -> PuntKey {
        match what {
            PuntClass::Udp(family, _) => PuntKey::Port(family),
            PuntClass::Protocol(family, _) => PuntKey::Protocol(family),
            PuntClass::Exception(_) => PuntKey::Reason,
        }
    }
}

/// Puts packets aside for the main thread.
pub(crate) struct ToSocket {
    pub by: PuntKey,
    pub tell: Sender<Item>,
}

fn transport(family: Family, pkt: &Packet<'_>) -> Option<Transport> {
    match family {
        Family::Ip4 => Transport::of_ip4(pkt.data()),
        Family::Ip6 => Transport::of_ip6(pkt.data()),
    }
}

/// Packets begin with the link's header, as with VPP. One that lies there no more, or never did, is made of zeros: no byte of
/// another packet is shown.
fn uncover(pkt: &mut Packet<'_>) -> Option<()> {
    let of = match pkt.data().first()? >> 4 {
        4 if pkt.header::<Ip4Header>().is_some() => EtherType::IP4,
        6 if pkt.header::<Ip6Header>().is_some() => EtherType::IP6,
        _ => return None,
    };
    pkt.push(EthernetHeader::LEN)?;
    if pkt.header::<EthernetHeader>().is_none_or(|header| header.ether_type() != of) {
        let header = EthernetHeader::new([0; 6].into(), [0; 6].into(), of);
        pkt.data_mut().get_mut(..EthernetHeader::LEN)?.copy_from_slice(header.as_bytes());
    }
    Some(())
}

impl ToSocket {
    fn what(&self, pkt: &Packet<'_>) -> Option<PuntClass> {
        match self.by {
            PuntKey::Reason => Some(PuntClass::Exception(PuntReason::of(pkt).0)),
            PuntKey::Protocol(family) => {
                let transport = transport(family, pkt)?;
                Some(PuntClass::Protocol(family, transport.protocol.0))
            }
            PuntKey::Port(family) => {
                let at = transport(family, pkt)?.offset + 2;
                let port = *pkt.data().get(at..)?.first_chunk::<2>()?;
                Some(PuntClass::Udp(family, u16::from_be_bytes(port)))
            }
        }
    }

    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let mut pkt = cx.cache().packet(&mut buffer);
        let what = self.what(&pkt);
        let what = what.filter(|_| uncover(&mut pkt).is_some());
        let Some(what) = what else { return cx.drop(buffer, Error::Failed) };
        cx.trace(&pkt, || format!("punt socket: {what:?}"));
        if let Err(refused) = self.tell.try_send(Item { what, buffer }) {
            cx.drop(refused.into_inner().buffer, Error::Congested);
        }
    }
}

impl FrameNode for ToSocket {
    const NAME: &'static str = PuntKey::Reason.node();
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, cx));
    }
}
