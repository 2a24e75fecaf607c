//! `error-drop` and `drop`: where every dropped packet ends.
//! any node -> **error-drop** -> **drop**
//!
//! Frame nodes, because they count runs of packets with the same reason at once and free whole frames.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_buffer::{Frame, Packet, SwIfIndex};

use crate::cx::FrameCx;
use crate::node::{Edge, ErrorCounter, ErrorCounters, FrameNode, NextNodes, NoError, NoNext, Severity};

/// Number of the counter for packets a frame node left behind. Number 0, which fresh buffers hold, is for packets that
/// took the way of drops without a reason: an edge this thread does not know, an arc without a next feature.
pub(crate) const FORGOTTEN: u16 = 1;
/// Number of the counter for packets that came to a deleted node.
pub(crate) const DELETED: u16 = 2;
/// Number of the counter for packets another thread's ring had no room for.
pub(crate) const CONGESTION: u16 = 3;

/// Reasons that are the runtime's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {}

impl ErrorCounters for Error {
    const COUNTERS: &'static [ErrorCounter] = &[
        ErrorCounter {
            name: "no_reason",
            description: "dropped without a reason",
            severity: Severity::Error,
            at: None,
        },
        ErrorCounter {
            name: "forgotten",
            description: "left in a frame by a node",
            severity: Severity::Error,
            at: None,
        },
        ErrorCounter {
            name: "deleted",
            description: "interface or node was deleted",
            severity: Severity::Error,
            at: None,
        },
        ErrorCounter {
            name: "handoff_congestion",
            description: "handoff ring full",
            severity: Severity::Error,
            at: None,
        },
    ];

    fn index(self) -> u32 {
        match self {}
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Drop,
}

impl NextNodes for Next {
    const NAMES: &'static [&'static str] = &["drop"];

    fn edge(self) -> Edge {
        match self {
            Next::Drop => Edge(1),
        }
    }
}

/// What is shown a packet that is about to go, and the number of its reason.
pub type DropWatch = Arc<dyn Fn(&mut Packet<'_>, u16) + Send + Sync>;

/// Where dropped packets can be looked at; one looks at a time.
#[derive(Default)]
pub struct DropTap {
    on: AtomicBool,
    watch: Mutex<Option<DropWatch>>,
}

impl DropTap {
    /// Shows dropped packets from now on, or no more.
    pub fn set(&self, watch: Option<DropWatch>) {
        let mut current = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        self.on.store(watch.is_some(), Ordering::Relaxed);
        *current = watch;
    }

    #[inline]
    fn get(&self) -> Option<DropWatch> {
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Counts each packet under its reason and under its receiving interface.
pub(crate) struct ErrorDrop {
    pub(crate) names: Arc<ErrorNames>,
    pub(crate) tap: Arc<DropTap>,
}

/// Words of a bit for each error number.
const WORDS: usize = (u16::MAX as usize + 1) / 64;

/// What all error numbers mean: `node: description`.
pub(crate) struct ErrorNames {
    names: Mutex<Vec<(Arc<str>, &'static ErrorCounter)>>,
    /// By how many counters a node had that was deleted: first numbers, for the next node with as many.
    free: Mutex<HashMap<usize, Vec<u32>>>,
    /// For which of them packets were dropped. A counter does not say so: many count what goes on.
    dropped: Box<[AtomicU64]>,
}

impl Default for ErrorNames {
    fn default() -> Self {
        let dropped = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        ErrorNames { names: Mutex::default(), free: Mutex::default(), dropped }
    }
}

impl ErrorNames {
    /// A packet was dropped for this reason.
    fn mark(&self, error: u16) {
        let (at, bit) = (usize::from(error) / 64, 1 << (error % 64));
        if let Some(word) = self.dropped.get(at)
            && word.load(Ordering::Relaxed) & bit == 0
        {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether a packet was ever dropped for this reason.
    pub(crate) fn was_dropped(&self, number: usize) -> bool {
        self.dropped
            .get(number / 64)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (number % 64) & 1 == 1)
    }

    pub(crate) fn add(&self, node: &Arc<str>, counters: &'static [ErrorCounter]) -> u32 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = counters.iter().map(|c| (c.at.map_or_else(|| Arc::clone(node), Arc::from), c));
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(base) = free.get_mut(&counters.len()).and_then(Vec::pop) {
            let slots = names.iter_mut().enumerate().skip(base as usize);
            for ((number, slot), name) in slots.zip(fresh) {
                *slot = name;
                if let Some(word) = self.dropped.get(number / 64) {
                    word.fetch_and(!(1 << (number % 64)), Ordering::Relaxed);
                }
            }
            return base;
        }
        let base = names.len();
        names.extend(fresh);
        base as u32
    }

    /// A node that has `count` numbers from `base` on is called otherwise.
    pub(crate) fn rename(&self, base: u32, count: usize, node: &Arc<str>) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, _) in names.iter_mut().skip(base as usize).take(count) {
            *name = Arc::clone(node);
        }
    }

    /// A node is gone: its numbers may be given to another. Its counters can be read until then.
    pub(crate) fn release(&self, base: u32, counters: &[ErrorCounter]) {
        if !counters.is_empty() {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.entry(counters.len()).or_default().push(base);
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<(Arc<str>, &'static ErrorCounter)> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(Arc<str>, &'static ErrorCounter)> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn describe(&self, error: u16) -> String {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(usize::from(error)).map_or_else(
            || format!("unknown reason {error}"),
            |(node, counter)| format!("{node}: {}", counter.description),
        )
    }
}

/// What the trace says: where the packet came in. The trace line of `drop` gives the reason, as in VPP.
struct ReceivedOn(SwIfIndex);

impl fmt::Display for ReceivedOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rx: sw_if_index {}", self.0)
    }
}

impl FrameNode for ErrorDrop {
    const NAME: &'static str = "error-drop";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (memory, thread) = (cx.memory(), cx.thread());
        let mut run = (0u16, SwIfIndex(0), 0u64);
        let count = |(error, rx, n): (u16, SwIfIndex, u64), cx: &FrameCx<'_>| {
            if n > 0 {
                self.names.mark(error);
                cx.counters().errors.add(thread, usize::from(error), n);
                cx.counters().drops.add(thread, rx.0 as usize, n);
            }
        };
        let (watch, drop) = (self.tap.get(), cx.target(Next::Drop.edge()));
        for i in 0..frame.len() {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let (error, rx) = (pkt.meta().error, pkt.rx());
            if (error, rx) != (run.0, run.1) {
                count(run, cx);
                run = (error, rx, 0);
            }
            run.2 += 1;
            if cx.tracing() {
                cx.trace(&pkt, || ReceivedOn(rx));
                cx.trace_at(drop, &pkt, || self.names.describe(error));
            }
            if let Some(watch) = &watch {
                watch(&mut pkt, error);
            }
        }
        count(run, cx);
        cx.send_frame(Next::Drop.edge(), frame);
    }
}

/// Frees.
pub(crate) struct Drop;

impl FrameNode for Drop {
    const NAME: &'static str = "drop";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        cx.free_frame(frame);
    }
}
