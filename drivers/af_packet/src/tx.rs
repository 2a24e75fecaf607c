//! `<host-interface>-tx`: packets to the kernel, by the batch.
//! `<interface>-output` | features of `interface-output` -> **`<host-interface>-tx`**
//!
//! A frame node, because one system call sends many packets.

use std::sync::Arc;

use shoal_buffer::{Buffer, Frame, Packet};
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};

use crate::TxReport;
use crate::port::Port;
use crate::queue::TX_BATCH;
use crate::send::Sum;

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// transmit queue full
    QueueFull,
    /// longer than the interface's MTU allows
    TooBig,
    /// refused for what it is
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

impl Sum {
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

impl FrameNode for HostTx {
    const NAME: &'static str = "host-interface-tx";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (interface, thread) = (self.port.index().0, cx.thread());
        let (mut sum, number) = (Sum::default(), self.port.placement.queue(thread));
        match self.port.sender(number) {
            Some(mut sender) if sender.is_some() => {
                let Some(sender) = sender.as_mut() else { return };
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
                    let full = packets.last().is_some_and(Option::is_some);
                    sender.send(&mut packets, &mut sum);
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
