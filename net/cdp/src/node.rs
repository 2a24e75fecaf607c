//! `cdp-input`: PDUs of neighbours. What they say goes to the main thread; one that does not fit the queue is counted and lost,
//! as the next one comes.
//! ethernet-input -> **cdp-input** -> drop

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::EthernetHeader;

use crate::pdu::{self, Invalid, Neighbor, PROTOCOL};

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
    /// good cdp packets (processed)
    #[counter("good cdp packets (processed)")]
    #[severity(info)]
    Processed,
    /// cdp packets with bad TLVs
    #[counter("cdp packets with bad TLVs")]
    BadTlv,
    /// cdp packets with bad protocol versions
    #[counter("cdp packets with bad protocol versions")]
    Version,
    /// cdp packets with bad checksums
    #[counter("cdp packets with bad checksums")]
    Checksum,
    /// cdp packets received on disabled interfaces
    #[counter("cdp packets received on disabled interfaces")]
    Disabled,
    /// cdp packets not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Version => Error::Version,
            Invalid::Checksum => Error::Checksum,
            Invalid::Tlv => Error::BadTlv,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {rx}: length {len}")]
pub(crate) struct Trace {
    rx: u32,
    len: usize,
}

/// Reads PDUs.
pub(crate) struct CdpInput {
    pub tell: Sender<ReceivedNeighbour>,
    pub enabled: Arc<AtomicBool>,
}

/// As many bytes as the frame says that it has: short ones are filled up on the wire.
fn pdu<'p>(pkt: &'p mut Packet<'_>) -> Option<&'p [u8]> {
    // ethernet-input has moved the front past the header, which still lies there.
    pkt.push(EthernetHeader::LEN)?;
    let length = usize::from(pkt.pull_header::<EthernetHeader>()?.ether_type().0);
    pkt.data().get(..length)?.get(PROTOCOL.header().len()..)
}

impl PacketNode for CdpInput {
    const NAME: &'static str = "cdp-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let interface = pkt.rx();
        cx.trace(pkt, || Trace { rx: interface.0, len: pkt.len() });
        if !self.enabled.load(Ordering::Relaxed) {
            return Err(Error::Disabled);
        }
        let neighbor = pdu::read(pdu(pkt).ok_or(Error::BadTlv)?)?;
        if self.tell.try_send(ReceivedNeighbour { interface, neighbor }).is_err() {
            return Err(Error::Congested);
        }
        cx.count(Error::Processed, 1);
        Ok(Next::Done)
    }
}
