//! `lldp-input`: PDUs of neighbours. What they say goes to the main thread; one that does not fit the queue is counted and lost,
//! as the next one comes.
//! ethernet-input -> **lldp-input** -> drop

use std::collections::BTreeSet;
use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Published;

use crate::pdu::{self, Neighbor};

/// A neighbour has spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReceivedNeighbour {
    pub interface: SwIfIndex,
    pub neighbor: Neighbor,
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
    /// good lldp packets (processed)
    #[counter("good lldp packets (processed)")]
    #[severity(info)]
    Processed,
    /// lldp packets with bad TLVs
    #[counter("lldp packets with bad TLVs")]
    BadTlv,
    /// lldp packets received on disabled interfaces
    #[counter("lldp packets received on disabled interfaces")]
    Disabled,
    /// lldp packets not looked at, too many at a time
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
pub(crate) struct LldpInput {
    pub tell: Sender<ReceivedNeighbour>,
    /// Interfaces where it is switched on.
    pub enabled: Arc<Published<BTreeSet<SwIfIndex>>>,
}

impl PacketNode for LldpInput {
    const NAME: &'static str = "lldp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = pkt.rx();
        cx.trace(pkt, || Trace { rx: interface.0, len: pkt.len() });
        if !self.enabled.load(cx.guard()).contains(&interface) {
            return Err(Error::Disabled);
        }
        let neighbor = pdu::read(pkt.data()).map_err(|_| Error::BadTlv)?;
        if self.tell.try_send(ReceivedNeighbour { interface, neighbor }).is_err() {
            return Err(Error::Congested);
        }
        cx.count(Error::Processed, 1);
        Ok(Next::Done)
    }
}
