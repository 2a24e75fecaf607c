//! `lacp-input`: PDUs of other ends. What they say goes to the main thread; a PDU that does not fit the queue is counted and
//! lost, as the next one comes soon.
//! ethernet-input -> **lacp-input** -> drop

use std::collections::BTreeSet;
use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Published;

use crate::pdu::{self, Invalid, Message};

/// Something that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReceivedPdu {
    pub interface: SwIfIndex,
    pub message: Result<Message, Invalid>,
}

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has been understood.
    #[node("drop")]
    Done,
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// good lacp packets -- consumed
    #[counter("good lacp packets -- consumed")]
    #[severity(info)]
    Consumed,
    /// unsupported slow protocol packets
    #[counter("unsupported slow protocol packets")]
    Unsupported,
    /// bad lacp packets -- packet too small
    #[counter("bad lacp packets -- packet too small")]
    TooSmall,
    /// bad lacp packets -- bad TLV length
    #[counter("bad lacp packets -- bad TLV length")]
    BadTlv,
    /// lacp packets received on disabled interfaces
    #[counter("lacp packets received on disabled interfaces")]
    Disabled,
    /// lacp packets not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {rx}: length {len}")]
pub(crate) struct Trace {
    rx: u32,
    len: usize,
}

/// Reads PDUs.
pub(crate) struct LacpInput {
    pub tell: Sender<ReceivedPdu>,
    /// Interfaces that speak LACP.
    pub ports: Arc<Published<BTreeSet<SwIfIndex>>>,
}

impl PacketNode for LacpInput {
    const NAME: &'static str = "lacp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = pkt.rx();
        cx.trace(pkt, || Trace { rx: interface.0, len: pkt.len() });
        if !self.ports.load(cx.guard()).contains(&interface) {
            return Err(Error::Disabled);
        }
        let message = pdu::read(pkt.data());
        if self.tell.try_send(ReceivedPdu { interface, message }).is_err() {
            return Err(Error::Congested);
        }
        match message {
            Err(Invalid::Unsupported) => Err(Error::Unsupported),
            Err(Invalid::TooSmall) => Err(Error::TooSmall),
            Err(Invalid::Tlv) => Err(Error::BadTlv),
            Ok(_) => {
                cx.count(Error::Consumed, 1);
                Ok(Next::Done)
            }
        }
    }
}
