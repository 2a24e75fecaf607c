//! `memifN/N-tx`: packets out of buffers into shared memory.
//! `memifN/N-output` | features of `interface-output` -> **`memifN/N-tx`**
//!
//! A frame node: it locks its queue once, shows the peer all packets at once, and frees them together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_vnet::{Offload, SegmentList, Segments, complete_checksum, ethernet_payload};

use crate::port::Port;
use crate::producer::{Producer, Refusal};
use crate::proto::Mode;

/// Bytes for one piece of a superframe.
const STORE: usize = 64 << 10;

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no free tx slots
    NoFreeSlots,
    /// longer than the whole ring
    TooLong,
    /// no peer is connected
    NotConnected,
    /// ring index or descriptor that cannot be, connection ended
    #[severity(warn)]
    BadIndex,
    /// checksum or segment offsets make no sense
    Invalid,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Error::NoFreeSlots,
            Refusal::TooLong => Error::TooLong,
            Refusal::Lie => Error::BadIndex,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("memif: hw_if_index {interface} tx-queue {queue} len {len}")]
struct Trace {
    interface: u32,
    queue: usize,
    len: usize,
}

/// One transmit queue.
pub(crate) struct TxQueue {
    producer: Producer,
    mode: Mode,
    /// Where a superframe is cut.
    store: Box<[u8]>,
}

impl TxQueue {
    pub(crate) fn new(producer: Producer, mode: Mode) -> Self {
        TxQueue { producer, mode, store: vec![0; STORE].into() }
    }

    #[inline(always)]
    fn send(&mut self, pkt: &mut Packet<'_>) -> Result<(), Error> {
        if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO)) {
            return self.send_owing(pkt.reborrow());
        }
        Ok(self.producer.send(pkt)?)
    }

    /// A packet from a port that offloads: memif has no word for what it owes.
    #[inline(never)]
    fn send_owing(&mut self, mut pkt: Packet<'_>) -> Result<(), Error> {
        if pkt.flags().has(Flags::GSO) {
            return self.send_pieces(&pkt);
        }
        complete_checksum(&mut pkt).ok_or(Error::Invalid)?;
        Ok(self.producer.send(&pkt)?)
    }

    fn send_pieces(&mut self, pkt: &Packet<'_>) -> Result<(), Error> {
        let list = SegmentList::of(pkt).ok_or(Error::TooLong)?;
        let net = match self.mode {
            Mode::Ethernet => ethernet_payload(pkt.data()),
            Mode::Ip => Some(0),
        };
        let pieces = Offload::load(pkt)
            .zip(net)
            .and_then(|(offload, net)| Segments::bounded(list.as_slice(), &offload, net))
            .filter(|p| p.max_len() <= STORE);
        let mut pieces = pieces.ok_or(Error::Invalid)?;
        while let Some(piece) = pieces.next_into(&mut self.store) {
            let len = piece.map_err(|_| Error::Invalid)?;
            let piece = self.store.get(..len).unwrap_or_default();
            self.producer.send_parts([piece].into_iter())?;
        }
        Ok(())
    }
}

/// The code of all `-tx` nodes of memifs.
pub(crate) struct MemifTx {
    pub(crate) port: Arc<Port>,
}

impl MemifTx {
    /// Tells how many packets were not sent.
    #[inline(always)]
    fn send(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) -> usize {
        let (interface, memory) = (self.port.index().0, cx.memory());
        let all = frame.len();
        let Some((number, mut slot)) = self.port.tx_queue(cx.thread()) else {
            return lost(cx, Error::NotConnected, all);
        };
        let Some(queue) = &mut *slot else { return lost(cx, Error::NotConnected, all) };
        if queue.producer.begin().is_err() {
            self.port.set_broken();
            return lost(cx, Error::BadIndex, all);
        }
        let mut failed = 0;
        for i in 0..all {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            cx.trace(&pkt, || Trace { interface, queue: number, len: pkt.len() });
            if let Err(error) = queue.send(&mut pkt) {
                failed += lost(cx, error, 1);
                if error == Error::BadIndex {
                    self.port.set_broken();
                }
            }
        }
        if queue.producer.publish() {
            self.port.facts.kicks.fetch_add(1, Ordering::Relaxed);
        }
        failed
    }
}

#[cold]
fn lost(cx: &FrameCx<'_>, error: Error, n: usize) -> usize {
    cx.count(error, n as u64);
    n
}

impl FrameNode for MemifTx {
    const NAME: &'static str = "memif-tx";
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
