//! `NAME-tx` of an interface: packets out of buffers, which a plugin copies and sends.
//! `NAME-output` | features of `interface-output` -> **`NAME-tx`**
//!
//! A frame node: it locks its queue once for all packets. What a device does not do itself, checksums and the cutting of
//! large packets, is done here before the plugin sees them.

use std::sync::Arc;

use shoal_buffer::{Buffer, Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_vnet::{Offload, SegmentList, Segments, complete_checksum, ethernet_payload};

use super::port::{Port, TxQueue};
use crate::sys::{Batch, TxHandle};

/// Packets whose views are held at a time.
const BATCH: usize = 64;

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// device's queue full
    QueueFull,
    /// refused by the device for what it is
    Refused,
    /// checksum or segment offsets make no sense
    Invalid,
    /// too many segments
    TooManySegments,
    /// device does not run
    NotRunning,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("hw_if_index {interface} tx queue {queue} len {len}")]
struct Trace {
    interface: u32,
    queue: usize,
    len: usize,
}

/// What became of the packets of one frame.
#[derive(Default)]
struct Sum {
    full: usize,
    refused: usize,
    invalid: usize,
    segments: usize,
}

/// The code of all `-tx` nodes of plugins' devices.
pub(crate) struct DeviceTx {
    pub(crate) port: Arc<Port>,
}

impl DeviceTx {
    /// What the device does itself of what a packet owes.
    fn leaves(&self, flags: Flags) -> bool {
        if flags.has(Flags::GSO) { self.port.tso && !flags.has(Flags::GSO_UDP) } else { self.port.checksum }
    }

    /// Sends some packets.
    fn send(&self, tx: &mut TxQueue, thread: usize, packets: &mut [Option<Packet<'_>>], sum: &mut Sum) {
        for slot in packets.iter_mut() {
            let Some(pkt) = slot else { continue };
            let flags = pkt.flags();
            let ours = flags.has(Flags::L4_CHECKSUM_OFFLOAD) && !flags.has(Flags::GSO) && !self.leaves(flags);
            if ours && complete_checksum(pkt).is_none() {
                sum.invalid += 1;
                *slot = None;
            }
        }
        let mut batch = tx.slots.batch();
        for pkt in packets.iter().flatten() {
            let flags = pkt.flags();
            if flags.has(Flags::GSO) && !self.leaves(flags) {
                // In order: what came before it goes before it.
                flush(batch, &mut tx.handle, thread, sum);
                cut(tx, thread, pkt, sum);
                batch = tx.slots.batch();
                continue;
            }
            let Some(owes) = Offload::load(pkt) else {
                sum.invalid += 1;
                continue;
            };
            if batch.push(pkt.segments(), &owes) {
                continue;
            }
            flush(batch, &mut tx.handle, thread, sum);
            batch = tx.slots.batch();
            sum.segments += usize::from(!batch.push(pkt.segments(), &owes));
        }
        flush(batch, &mut tx.handle, thread, sum);
    }
}

fn flush(batch: Batch<'_>, queue: &mut TxHandle, thread: usize, sum: &mut Sum) {
    if !batch.is_empty() {
        let (_, full, refused) = batch.send(queue, thread);
        sum.full += full;
        sum.refused += refused;
    }
}

/// Sends a superframe piece by piece.
fn cut(tx: &mut TxQueue, thread: usize, pkt: &Packet<'_>, sum: &mut Sum) {
    let Some(list) = SegmentList::of(pkt) else {
        sum.segments += 1;
        return;
    };
    let pieces = Offload::load(pkt)
        .zip(ethernet_payload(pkt.data()))
        .and_then(|(offload, net)| Segments::bounded(list.as_slice(), &offload, net))
        .filter(|p| p.max_len() <= tx.store.len());
    let Some(mut pieces) = pieces else {
        sum.invalid += 1;
        return;
    };
    loop {
        let (mut batch, mut room) = (tx.slots.batch(), &mut *tx.store);
        let more = loop {
            if batch.is_full() || room.len() < pieces.max_len() {
                break true;
            }
            let piece = match pieces.next_into(room) {
                None => break false,
                Some(piece) => piece.ok().and_then(|len| room.split_at_mut_checked(len)),
            };
            let Some((piece, rest)) = piece else {
                sum.invalid += 1;
                break false;
            };
            sum.segments += usize::from(!batch.push(std::iter::once(&*piece), &Offload::default()));
            room = rest;
        };
        flush(batch, &mut tx.handle, thread, sum);
        if !more {
            return;
        }
    }
}

impl Sum {
    fn count(&self, cx: &FrameCx<'_>, interface: u32) {
        let counts = [
            (Error::QueueFull, self.full),
            (Error::Refused, self.refused),
            (Error::Invalid, self.invalid),
            (Error::TooManySegments, self.segments),
        ];
        let mut all = 0;
        for (error, n) in counts.into_iter().filter(|(_, n)| *n > 0) {
            cx.count(error, n as u64);
            all += n as u64;
        }
        if all > 0 {
            cx.counters().tx_error.add(cx.thread(), interface as usize, all);
        }
    }
}

impl FrameNode for DeviceTx {
    const NAME: &'static str = "device-tx";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (interface, thread) = (self.port.index().0, cx.thread());
        let number = self.port.placement.queue(thread);
        let Some(mut tx) = self.port.tx_queue(number) else {
            cx.count(Error::NotRunning, frame.len() as u64);
            cx.counters().tx_error.add(thread, interface as usize, frame.len() as u64);
            cx.free_frame(frame);
            return;
        };
        let mut sum = Sum::default();
        let mut tokens = frame.drain();
        loop {
            let mut buffers = [const { None::<Buffer> }; BATCH];
            let mut packets = [const { None::<Packet<'_>> }; BATCH];
            buffers.iter_mut().zip(&mut tokens).for_each(|(slot, token)| *slot = Some(token));
            let cache = cx.cache();
            for (slot, buffer) in packets.iter_mut().zip(buffers.iter_mut().flatten()) {
                *slot = Some(cache.packet(buffer));
            }
            if cx.tracing() {
                for pkt in packets.iter().flatten() {
                    cx.trace(pkt, || Trace { interface, queue: number, len: pkt.len() });
                }
            }
            let full = packets.last().is_some_and(Option::is_some);
            self.send(&mut tx, thread, &mut packets, &mut sum);
            buffers.into_iter().flatten().for_each(|buffer| cx.cache().free(buffer));
            if !full {
                break;
            }
        }
        sum.count(cx, interface);
    }
}
