//! `tapN-tx`: packets to the host's programs.
//! `tapN-output` | features of `interface-output` -> **`tapN-tx`**
//!
//! A frame node: it locks its queue once for all packets and frees them together.

use std::sync::Arc;

use shoal_buffer::Frame;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};
use shoal_vnet::owed;

use crate::SendError;
use crate::port::Port;

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
    /// other error of the system call
    Other,
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
        let mut failed = 0;
        if let Some(mut queue) = self.port.tx_queue(number) {
            for i in 0..frame.len() {
                let Some(pkt) = frame.packet(memory, i) else { continue };
                cx.trace(&pkt, || Trace { interface, queue: number, len: pkt.len() });
                let vnet = owed(&pkt).ok_or(Error::Invalid);
                if let Err(error) = vnet.and_then(|vnet| Ok(queue.send(vnet, pkt.segments())?)) {
                    cx.count(error, 1);
                    failed += 1;
                    if error == Error::Gone {
                        self.port.set_gone();
                    }
                }
            }
        }
        if failed > 0 {
            cx.counters().tx_error.add(thread, interface as usize, failed);
        }
        cx.free_frame(frame);
    }
}
