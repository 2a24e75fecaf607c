//! `<host-interface>-tx`: packets to the kernel, by the batch.
//! `<interface>-output` | features of `interface-output` -> **`<host-interface>-tx`**
//!
//! A frame node, because one system call sends many packets.

use std::sync::Arc;

use shoal_buffer::{Buffer, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_vnet::owed;

use crate::port::Port;
use crate::queue::TX_BATCH;
use crate::{TxQueue, TxRefused, TxReport};

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// transmit queue full
    QueueFull,
    /// longer than the interface's MTU allows
    TooBig,
    /// refused by the kernel for what it is
    Invalid,
    /// interface is down
    Down,
    /// interface was deleted
    Gone,
    /// too many segments
    TooManySegments,
    /// other error of the system call
    Other,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("af_packet: hw_if_index {interface} tx-queue {queue} len {len}")]
struct Trace {
    interface: u32,
    queue: usize,
    len: usize,
}

/// The code of all `-tx` nodes of host interfaces.
pub(crate) struct HostTx {
    pub(crate) port: Arc<Port>,
}

/// What became of the packets of one frame.
#[derive(Default)]
struct Sum {
    report: TxReport,
    segments: usize,
}

impl Sum {
    fn add(&mut self, batch: TxReport) {
        let sum = &mut self.report;
        sum.queue_full += batch.queue_full;
        sum.too_big += batch.too_big;
        sum.invalid += batch.invalid;
        sum.down += batch.down;
        sum.gone += batch.gone;
        sum.other += batch.other;
    }

    fn count(&self, cx: &FrameCx<'_>, interface: u32) {
        let TxReport { queue_full, too_big, invalid, down, gone, other, .. } = self.report;
        let counts = [
            (Error::QueueFull, queue_full),
            (Error::TooBig, too_big),
            (Error::Invalid, invalid),
            (Error::Down, down),
            (Error::Gone, gone),
            (Error::TooManySegments, self.segments),
            (Error::Other, other),
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

/// Sends some packets and counts what the kernel did not take.
fn send(queue: &mut TxQueue, packets: &[Option<Packet<'_>>], sum: &mut Sum) {
    let mut batch = queue.batch();
    for pkt in packets.iter().flatten() {
        let Some(vnet) = owed(pkt) else {
            sum.report.invalid += 1;
            continue;
        };
        let mut pushed = batch.push(vnet, pkt.segments());
        if pushed == Err(TxRefused::BatchFull) {
            sum.add(batch.send());
            batch = queue.batch();
            pushed = batch.push(vnet, pkt.segments());
        }
        sum.segments += usize::from(pushed.is_err());
    }
    sum.add(batch.send());
}

impl FrameNode for HostTx {
    const NAME: &'static str = "host-interface-tx";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (interface, thread) = (self.port.index().0, cx.thread());
        let mut sum = Sum::default();
        let queue = self.port.tx_queue(thread);
        match queue {
            Some(mut queue) if queue.is_some() => {
                let Some(queue) = queue.as_mut() else { return };
                let number = thread % self.port.tx_queues();
                let mut tokens = frame.drain();
                loop {
                    let mut buffers = [const { None::<Buffer> }; TX_BATCH];
                    let mut packets = [const { None::<Packet<'_>> }; TX_BATCH];
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
                    send(queue, &packets, &mut sum);
                    let full = packets.last().is_some_and(Option::is_some);
                    buffers.into_iter().flatten().for_each(|buffer| cx.cache().free(buffer));
                    if !full {
                        break;
                    }
                }
            }
            _ => {
                sum.report.gone = frame.len();
                cx.free_frame(frame);
            }
        }
        sum.count(cx, interface);
    }
}
