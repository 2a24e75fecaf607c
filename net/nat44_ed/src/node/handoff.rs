//! `nat44-in2out-worker-handoff` and its like: packets whose session another thread has.
//! nat44-ed-in2out -> **nat44-in2out-worker-handoff** -> nat44-ed-in2out, on that thread

use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::Frame;
use shoal_derive::ErrorCounters;
use shoal_graph::{FrameCx, FrameNode, NoNext, NodeIndex};

use crate::packet::Ticket;

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// congestion drop
    #[counter("congestion drop")]
    CongestionDrop,
    /// same worker
    #[counter("same worker")]
    #[severity(info)]
    SameWorker,
    /// do handoff
    #[counter("do handoff")]
    #[severity(info)]
    DoHandoff,
}

/// Hands packets over.
pub struct Handoff {
    /// The node they go to.
    pub(crate) node: AtomicU32,
}

impl FrameNode for Handoff {
    const NAME: &'static str = "nat44-in2out-worker-handoff";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let node = NodeIndex::from_number(self.node.load(Ordering::Relaxed));
        let mut there = 0;
        for mut buffer in frame.drain() {
            let thread = cx.cache().packet(&mut buffer).scratch::<Ticket>().thread as usize;
            // What stays here would only come back.
            if !cx.reaches(thread) {
                cx.drop(buffer, Error::CongestionDrop);
                continue;
            }
            there += 1;
            cx.handoff(thread, node, buffer);
        }
        cx.count(Error::DoHandoff, there);
    }
}
