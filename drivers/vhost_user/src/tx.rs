//! `VirtualEthernet0/0/N-tx`: packets into the buffers of a guest.
//! `VirtualEthernet0/0/N-output` | features of `interface-output` -> **`VirtualEthernet0/0/N-tx`**
//!
//! A frame node: it locks its queue once, shows the guest all packets at once, and frees them together.

use std::sync::Arc;

use shoal_buffer::{Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_vnet::{
    Gso, GsoKind, Offload, SegmentList, Segments, VnetHdr, complete_checksum, ethernet_payload,
};
use zerocopy::IntoBytes as _;

use crate::features::{Features, GUEST_CSUM, GUEST_ECN, GUEST_TSO4, GUEST_TSO6};
use crate::port::Port;
use crate::queue::{Refusal, Sender};

/// Bytes for one piece of a superframe.
const STORE: usize = 64 << 10;
/// A packet that owes nothing.
const PLAIN: [u8; 10] = [0; 10];

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// tx packet drops (no available descriptors)
    Full,
    /// tx packet drops (guest's buffers too short)
    TooLong,
    /// tx packet drops (no guest)
    NotReady,
    /// ring that makes no sense, connection ended
    #[severity(warn)]
    BadRing,
    /// checksum or segment offsets make no sense
    Invalid,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Error::Full,
            Refusal::TooLong => Error::TooLong,
            Refusal::Lie => Error::BadRing,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("vhost-user: hw_if_index {interface} tx-queue {queue} len {len}")]
struct Trace {
    interface: u32,
    queue: usize,
    len: usize,
}

/// One transmit queue.
pub(crate) struct TxQueue {
    sender: Sender,
    /// Where a superframe is cut that the guest cannot take whole.
    store: Box<[u8]>,
}

fn takes(features: Features, gso: Gso) -> bool {
    let kind = match gso.kind {
        GsoKind::Tcp4 => features.has(GUEST_TSO4),
        GsoKind::Tcp6 => features.has(GUEST_TSO6),
        GsoKind::Udp => false,
    };
    kind && (!gso.ecn || features.has(GUEST_ECN))
}

impl TxQueue {
    pub(crate) fn new(sender: Sender) -> Self {
        TxQueue { sender, store: vec![0; STORE].into() }
    }

    #[inline(always)]
    fn send(&mut self, pkt: &mut Packet<'_>) -> Result<(), Error> {
        if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO)) {
            return self.send_owing(pkt.reborrow());
        }
        Ok(self.sender.send(&PLAIN, pkt.len(), pkt.segments())?)
    }

    /// A packet from a port that offloads: the guest may be told what it owes, as far as it understands that.
    #[inline(never)]
    fn send_owing(&mut self, mut pkt: Packet<'_>) -> Result<(), Error> {
        let features = self.sender.features();
        let offload = Offload::load(&pkt).ok_or(Error::Invalid)?;
        match offload.gso {
            Some(gso) if !takes(features, gso) => return self.send_pieces(&pkt, &offload),
            None if !features.has(GUEST_CSUM) => {
                complete_checksum(&mut pkt).ok_or(Error::Invalid)?;
                return Ok(self.sender.send(&PLAIN, pkt.len(), pkt.segments())?);
            }
            _ => {}
        }
        let vnet = VnetHdr::from(offload);
        let bytes: &[u8; 10] = vnet.as_bytes().first_chunk().ok_or(Error::Invalid)?;
        Ok(self.sender.send(bytes, pkt.len(), pkt.segments())?)
    }

    fn send_pieces(&mut self, pkt: &Packet<'_>, offload: &Offload) -> Result<(), Error> {
        let list = SegmentList::of(pkt).ok_or(Error::TooLong)?;
        let pieces = ethernet_payload(pkt.data())
            .and_then(|net| Segments::bounded(list.as_slice(), offload, net))
            .filter(|p| p.max_len() <= STORE);
        let mut pieces = pieces.ok_or(Error::Invalid)?;
        while let Some(piece) = pieces.next_into(&mut self.store) {
            let len = piece.map_err(|_| Error::Invalid)?;
            let piece = self.store.get(..len).unwrap_or_default();
            self.sender.send(&PLAIN, len, std::iter::once(piece))?;
        }
        Ok(())
    }
}

/// The code of all `-tx` nodes of vhost-user interfaces.
pub(crate) struct VhostTx {
    pub(crate) port: Arc<Port>,
}

impl VhostTx {
    /// Tells how many packets were not sent.
    #[inline(always)]
    fn send(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) -> usize {
        let (interface, memory) = (self.port.index().0, cx.memory());
        let all = frame.len();
        let Some((number, mut slot)) = self.port.tx_queue(cx.thread()) else {
            return lost(cx, Error::NotReady, all);
        };
        let Some(queue) = &mut *slot else { return lost(cx, Error::NotReady, all) };
        if queue.sender.begin().is_err() {
            self.port.set_broken();
            return lost(cx, Error::BadRing, all);
        }
        let mut failed = 0;
        for i in 0..all {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            cx.trace(&pkt, || Trace { interface, queue: number, len: pkt.len() });
            if let Err(error) = queue.send(&mut pkt) {
                failed += lost(cx, error, 1);
                if error == Error::BadRing {
                    self.port.set_broken();
                }
            }
        }
        queue.sender.show();
        failed
    }
}

#[cold]
fn lost(cx: &FrameCx<'_>, error: Error, n: usize) -> usize {
    cx.count(error, n as u64);
    n
}

impl FrameNode for VhostTx {
    const NAME: &'static str = "vhost-user-tx";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let failed = self.send(frame, cx);
        if failed > 0 {
            cx.counters().tx_error.add(cx.thread(), self.port.index().0 as usize, failed as u64);
        }
        cx.free_frame(frame);
    }
}
