//! `<interface>-tx`: packets to the kernel's ring, and one call for a frame of them if the kernel sleeps.
//! `<interface>-output` | features of `interface-output` -> **`<interface>-tx`**
//!
//! A frame node, because one system call sends many packets.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_buffer::Frame;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NoNext};

use crate::port::Port;
use crate::send::Sum;

/// Why a packet is not sent.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// transmit ring full
    QueueFull,
    /// longer than a frame of the ring
    TooBig,
    /// refused for what it is
    Invalid,
    /// no buffer free to cut a large packet
    NoBuffer,
    /// interface was deleted
    Gone,
    /// frames wait for an interface that is down
    Down,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("af_xdp: hw_if_index {interface} tx-queue {queue} len {len}")]
struct Trace {
    interface: u32,
    queue: usize,
    len: usize,
}

/// The code of all `-tx` nodes of AF_XDP interfaces.
pub(crate) struct XdpTx {
    pub(crate) port: Arc<Port>,
}

impl Sum {
    fn count(&self, cx: &FrameCx<'_>, interface: u32) {
        let Sum { full, too_long, invalid, no_buffer, down, gone } = *self;
        let lost = [
            (Error::QueueFull, full),
            (Error::TooBig, too_long),
            (Error::Invalid, invalid),
            (Error::NoBuffer, no_buffer),
            (Error::Gone, gone),
        ];
        let mut all = 0;
        for (error, n) in lost.into_iter().filter(|(_, n)| *n > 0) {
            cx.count(error, n as u64);
            all += n as u64;
        }
        if all > 0 {
            cx.counters().tx_error.add(cx.thread(), interface as usize, all);
        }
        // Not lost: they go when it is up.
        if down > 0 {
            cx.count(Error::Down, down as u64);
        }
    }
}

impl FrameNode for XdpTx {
    const NAME: &'static str = "af_xdp-tx";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (interface, thread) = (self.port.index().0, cx.thread());
        let mut sum = Sum::default();
        let mut held = self.port.sender_of(thread);
        let mine = held.as_mut().and_then(|(queue, sender)| Some((*queue, sender.as_mut()?)));
        if let Some((queue, sender)) = mine {
            for mut buffer in frame.drain() {
                if cx.tracing() {
                    let pkt = cx.cache().packet(&mut buffer);
                    cx.trace(&pkt, || Trace { interface, queue, len: pkt.len() });
                }
                sender.push(buffer, cx.cache(), &mut sum);
            }
            sender.kick(cx.cache(), &mut sum);
            let malformed = sender.malformed();
            if malformed > 0 {
                self.port.malformed.fetch_add(malformed, Ordering::Relaxed);
            }
        } else {
            sum.gone = frame.len();
            cx.free_frame(frame);
        }
        sum.count(cx, interface);
    }
}
