//! `linux-cp-osi`: packets of OSI protocols that an operator lets pass (IS-IS), in 802.3 frames or in those of type 0x8870
//! (IS-IS with long frames), between an interface and its image as they are.
//! ethernet-input -> **linux-cp-osi** -> interface-output

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::IfTable;
use shoal_wire::EthernetHeader;

use crate::peers::Peers;

/// What stands between the length and an OSI packet: to and from the network layer, an unnumbered frame (ISO 8802-2).
const LLC: [u8; 3] = [0xfe, 0xfe, 0x03];

/// Protocols that pass, a bit each. Clones are the same set.
#[derive(Clone, Default)]
pub(crate) struct Protocols(Arc<[AtomicU64; 4]>);

impl Protocols {
    pub(crate) fn add(&self, protocol: u8) {
        if let Some(word) = self.0.get(usize::from(protocol / 64)) {
            word.fetch_or(1 << (protocol % 64), Ordering::Relaxed);
        }
    }

    pub(crate) fn remove(&self, protocol: u8) {
        if let Some(word) = self.0.get(usize::from(protocol / 64)) {
            word.fetch_and(!(1 << (protocol % 64)), Ordering::Relaxed);
        }
    }

    pub(crate) fn has(&self, protocol: u8) -> bool {
        let word = self.0.get(usize::from(protocol / 64)).map_or(0, |word| word.load(Ordering::Relaxed));
        word >> (protocol % 64) & 1 != 0
    }
}

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To the other one of the pair.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// frame carries no OSI packet
    NotOsi,
    /// OSI protocol is not enabled
    NotEnabled,
    /// interface has no image in Linux
    NoPair,
    /// frame is cut short
    TooShort,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("linux-cp-osi: {rx} -> {tx}")]
pub(crate) struct Trace {
    rx: u32,
    tx: u32,
}

/// Crosses in both directions.
pub(crate) struct Osi {
    pub peers: Peers,
    pub interfaces: IfTable,
    pub protocols: Protocols,
}

impl PacketNode for Osi {
    const NAME: &'static str = "linux-cp-osi";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let protocol = match pkt.data() {
            [a, b, c, protocol, ..] if [*a, *b, *c] == LLC => *protocol,
            _ => return Err(Error::NotOsi),
        };
        if !self.protocols.has(protocol) {
            return Err(Error::NotEnabled);
        }
        let rx = pkt.rx();
        let tx = self.peers.of(rx).ok_or(Error::NoPair)?;
        cx.trace(pkt, || Trace { rx: rx.0, tx: tx.0 });
        // ethernet-input has moved the front past the header, which still lies there.
        pkt.push(EthernetHeader::LEN).ok_or(Error::TooShort)?;
        self.peers.tag(&self.interfaces, (rx, tx), pkt, cx.guard()).ok_or(Error::TooShort)?;
        pkt.meta_mut().tx = tx;
        Ok(Next::Output)
    }
}
