//! `tapN-tx`: packets to the host's programs.
//! `tapN-output` | features of `interface-output` -> **`tapN-tx`**
//!
//! A frame node: it locks its queue once for all packets and frees them together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::{Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_vnet::{
    Front, Offload as Owed, PieceError, SegmentList, Segments, VnetHdr, coalesce, complete_checksum,
    ethernet_payload, owed,
};

use crate::pair::{Before, Sending};
use crate::port::Port;
use crate::{Coalesce, Mode, Offload, SendError};

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// host's queue full
    QueueFull,
    /// refused by the host for what it is
    Invalid,
    /// host's side is down
    Down,
    /// interface was deleted by the host
    Gone,
    /// too many segments
    TooManySegments,
    /// no buffer free to cut a large packet
    NoBuffer,
    /// packets merged into another
    #[severity(info)]
    Merged,
    /// other error of the system call
    Other,
    /// used ring entry that makes no sense
    #[severity(warn)]
    Malformed,
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::QueueFull => Error::QueueFull,
            SendError::Invalid => Error::Invalid,
            SendError::Down => Error::Down,
            SendError::Gone => Error::Gone,
            SendError::TooManySegments => Error::TooManySegments,
            SendError::Errno(_) => Error::Other,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("virtio: hw_if_index {interface} tx-queue {queue} len {len}")]
struct Trace {
    interface: u32,
    queue: usize,
    len: usize,
}

/// The code of all `-tx` nodes of TAPs.
pub(crate) struct TapTx {
    pub(crate) port: Arc<Port>,
}

impl FrameNode for TapTx {
    const NAME: &'static str = "tap-tx";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (interface, thread, memory) = (self.port.index().0, cx.thread(), cx.memory());
        let number = self.port.placement.queue(thread);
        let offload = self.port.offload();
        if offload == Offload::Gso && self.port.coalesce() == Coalesce::On {
            self.merge(frame, cx);
        }
        let mut failed = 0;
        if let Some(mut queue) = self.port.tx_queue(number) {
            let mut queue = queue.lock();
            let before = queue.begin();
            if before != Before::default() {
                failed += self.wrong(before, frame, cx);
            }
            for i in 0..frame.len() {
                let Some(mut pkt) = frame.packet(memory, i) else { continue };
                cx.trace(&pkt, || Trace { interface, queue: number, len: pkt.len() });
                let owes = pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO));
                let sent = if owes && offload != Offload::Gso {
                    self.send_paid(&mut pkt, offload, &mut queue, cx)
                } else {
                    send(&pkt, &mut queue)
                };
                if let Err(error) = sent {
                    cx.count(error, 1);
                    failed += 1;
                    if error == Error::Gone {
                        self.port.set_gone();
                    }
                }
            }
            if queue.finish() {
                self.port.rings.kicks.fetch_add(1, Ordering::Relaxed);
            }
        }
        if failed > 0 {
            cx.counters().tx_error.add(thread, interface as usize, failed);
        }
        cx.free_frame(frame);
    }
}

fn send(pkt: &Packet<'_>, queue: &mut Sending<'_>) -> Result<(), Error> {
    let vnet = owed(pkt).ok_or(Error::Invalid)?;
    Ok(queue.send(vnet, pkt.segments())?)
}

impl TapTx {
    /// The kernel gave back what makes no sense; tells how many packets are not sent for it: all, if the ring is of no use
    /// any more.
    #[cold]
    fn wrong(&self, before: Before, frame: &mut Frame, cx: &mut FrameCx<'_>) -> u64 {
        self.port.rings.malformed.fetch_add(before.malformed as u64, Ordering::Relaxed);
        let lost = if before.broken { frame.len() } else { 0 };
        cx.count(Error::Malformed, (before.malformed.max(lost)) as u64);
        if before.broken {
            cx.free_frame(frame);
        }
        lost as u64
    }

    #[cold]
    fn merge(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let front = if self.port.mode == Mode::Tap { Front::Ethernet } else { Front::Ip };
        let mut spare = cx.blank();
        let merged = coalesce(frame, &mut spare, cx.cache(), front);
        cx.recycle(spare);
        if merged > 0 {
            cx.count(Error::Merged, merged as u64);
        }
    }

    /// Sends a packet that owes what this TAP's host is not to be asked for.
    #[cold]
    fn send_paid(
        &self,
        pkt: &mut Packet<'_>,
        offload: Offload,
        queue: &mut Sending<'_>,
        cx: &mut FrameCx<'_>,
    ) -> Result<(), Error> {
        if !pkt.flags().has(Flags::GSO) {
            if offload == Offload::Nothing {
                complete_checksum(pkt).ok_or(Error::Invalid)?;
            }
            return send(pkt, queue);
        }
        let list = SegmentList::of(pkt).ok_or(Error::TooManySegments)?;
        let net = if self.port.mode == Mode::Tap { ethernet_payload(pkt.data()) } else { Some(0) };
        let pieces =
            Owed::load(pkt).zip(net).and_then(|(owed, net)| Segments::bounded(list.as_slice(), &owed, net));
        let mut pieces = pieces.ok_or(Error::Invalid)?;
        while let Some(piece) = pieces.next_packet(cx.cache(), pkt.current()) {
            let mut piece = piece.map_err(|error| match error {
                PieceError::NoBuffer => Error::NoBuffer,
                PieceError::BadHeaders => Error::Invalid,
            })?;
            let sent = queue.send(VnetHdr::default(), cx.cache().packet(&mut piece).segments());
            cx.cache().free(piece);
            sent?;
        }
        Ok(())
    }
}
