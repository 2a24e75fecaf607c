//! `dslite-in2out-handoff`, `dslite-out2in-handoff`: packets whose session another thread has.
//! dslite-in2out -> **dslite-in2out-handoff** -> dslite-in2out, on that thread

use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::Frame;
use shoal_graph::{FrameCx, FrameNode, NoNext, NodeIndex};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Error;

/// The thread that a packet goes to, in its scratch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Ticket {
    /// The thread.
    pub thread: u32,
}

/// Hands packets over.
pub struct Handoff {
    /// The node they go to.
    pub(crate) node: AtomicU32,
}

impl FrameNode for Handoff {
    const NAME: &'static str = "dslite-in2out-handoff";
    type Next = NoNext;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let node = NodeIndex::from_number(self.node.load(Ordering::Relaxed));
        for mut buffer in frame.drain() {
            let thread = cx.cache().packet(&mut buffer).scratch::<Ticket>().thread as usize;
            // What stays here would only come back.
            if cx.reaches(thread) {
                cx.handoff(thread, node, buffer);
            } else {
                cx.drop(buffer, Error::CongestionDrop);
            }
        }
    }
}
