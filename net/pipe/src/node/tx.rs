//! `pipeN-tx`: what one end sends, the other end receives.
//! pipeN-output -> **pipeN-tx** -> pipe-rx
//!
//! A frame node: its packets keep together, so the whole frame is counted and moved at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::{Frame, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_interface::{receive_again, send_received};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// In by the other end.
    #[node("pipe-rx")]
    Rx,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// pipe itself sends nothing, its ends do
    #[counter("no_end")]
    NoEnd,
}

/// The ends of a pipe; 0 for one that is not there. Clones are the same.
#[derive(Clone, Default)]
pub struct PipeEnds(Arc<[AtomicU32; 2]>);

impl PipeEnds {
    pub(crate) fn set(&self, ends: [SwIfIndex; 2]) {
        self.0.iter().zip(ends).for_each(|(slot, end)| slot.store(end.0, Ordering::Relaxed));
    }

    #[inline(always)]
    fn other(&self, end: SwIfIndex) -> Option<SwIfIndex> {
        let [a, b] = &*self.0;
        let (a, b) = (a.load(Ordering::Relaxed), b.load(Ordering::Relaxed));
        let other = match end.0 {
            0 => 0,
            end if end == a => b,
            end if end == b => a,
            _ => 0,
        };
        (other != 0).then_some(SwIfIndex(other))
    }
}

/// Sends from end to end.
pub struct PipeTx {
    /// Which they are.
    pub ends: PipeEnds,
}

impl FrameNode for PipeTx {
    const NAME: &'static str = "pipe-tx";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (memory, thread, mut lost) = (cx.memory(), cx.thread(), false);
        let mut run = (SwIfIndex(0), 0u64, 0u64);
        let count = |(rx, packets, bytes): (SwIfIndex, u64, u64), cx: &FrameCx<'_>| {
            if packets > 0 {
                cx.counters().rx.add(thread, rx.0 as usize, packets, bytes);
            }
        };
        for i in 0..frame.len() {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let Some(other) = self.ends.other(pkt.tx()) else {
                lost = true;
                continue;
            };
            if other != run.0 {
                count(run, cx);
                run = (other, 0, 0);
            }
            run = (other, run.1 + 1, run.2 + pkt.len() as u64);
            let meta = pkt.meta_mut();
            receive_again(meta, other);
        }
        count(run, cx);
        if lost {
            return send_received(frame, Next::Rx.edge(), Error::NoEnd, cx);
        }
        cx.send_frame(Next::Rx.edge(), frame);
    }
}
