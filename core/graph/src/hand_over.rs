//! A node that hands packets to the threads that their tickets name.
//!
//! Features whose sessions belong to threads add one under a name of their own, for each node that packets are handed to:
//! that node writes a [`Ticket`] and sends the packet here, and gets it on the other thread.

use shoal_buffer::Frame;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::cx::FrameCx;
use crate::node::{ErrorCounter, ErrorCounters, FrameNode, NoNext, NodeIndex, Severity};

/// The thread that a packet goes to, at the front of its scratch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Ticket {
    /// The thread.
    pub thread: u32,
}

/// What is counted, by VPP's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandOverError {
    /// Packets for a thread that is not reached from here.
    Congestion,
    /// Packets handed over.
    Done,
}

impl ErrorCounters for HandOverError {
    const COUNTERS: &'static [ErrorCounter] = &[
        ErrorCounter {
            name: "congestion drop",
            description: "congestion drop",
            severity: Severity::Error,
            at: None,
        },
        ErrorCounter { name: "do handoff", description: "do handoff", severity: Severity::Info, at: None },
    ];

    fn index(self) -> u32 {
        self as u32
    }
}

/// Hands packets over.
pub struct HandOver {
    to: NodeIndex,
}

impl HandOver {
    /// To this node, on the other thread.
    pub fn new(to: NodeIndex) -> Self {
        HandOver { to }
    }
}

impl FrameNode for HandOver {
    const NAME: &'static str = "hand-over";
    type Next = NoNext;
    type Error = HandOverError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut done = 0;
        for mut buffer in frame.drain() {
            let thread = cx.cache().packet(&mut buffer).scratch::<Ticket>().thread as usize;
            // What stays here would only come back.
            if cx.reaches(thread) {
                cx.handoff(thread, self.to, buffer);
                done += 1;
            } else {
                cx.drop(buffer, HandOverError::Congestion);
            }
        }
        cx.count(HandOverError::Done, done);
    }
}
