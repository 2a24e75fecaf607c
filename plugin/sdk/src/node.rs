//! What a node is, and how it is called. Unsafe, because the router calls by pointer.

use core::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use shoal_plugin_abi as abi;

use crate::Packet;

/// What a node does with one packet.
pub trait Node: Send + Sync + 'static {
    /// Its name in the graph.
    const NAME: &'static str;
    /// Names of the nodes its packets go to, for [`Next::Node`].
    const NEXT: &'static [&'static str] = &[];
    /// What it counts.
    const COUNTERS: &'static [Counter] = &[];
    /// Arcs it joins.
    const FEATURES: &'static [Feature] = &[];

    /// What happens to one packet. A panic drops the rest of the frame, counted.
    fn packet(&self, packet: &mut Packet<'_>, call: &mut Call<'_>) -> Next;

    /// What `show trace` says of a packet, after [`Node::packet`]. Only traced packets are asked for.
    fn trace(&self, _: &Packet<'_>) -> Option<String> {
        None
    }
}

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// To the next feature of the arc it is on, or to the arc's end.
    Feature,
    /// To one of [`Node::NEXT`], by position.
    Node(u16),
    /// Nowhere: one of [`Node::COUNTERS`], by position, tells why.
    Drop(u16),
}

/// One counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) severity: u32,
}

impl Counter {
    /// Packets were lost.
    pub const fn error(name: &'static str, description: &'static str) -> Self {
        Counter { name, description, severity: abi::SHOAL_ERROR }
    }

    /// Something an operator may want to look at.
    pub const fn warn(name: &'static str, description: &'static str) -> Self {
        Counter { name, description, severity: abi::SHOAL_WARN }
    }

    /// Ordinary life.
    pub const fn info(name: &'static str, description: &'static str) -> Self {
        Counter { name, description, severity: abi::SHOAL_INFO }
    }
}

/// An arc that a node joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    pub(crate) arc: &'static str,
    pub(crate) before: &'static [&'static str],
    pub(crate) after: &'static [&'static str],
}

impl Feature {
    /// A place on an arc.
    pub const fn on(arc: &'static str) -> Self {
        Feature { arc, before: &[], after: &[] }
    }

    /// The features it comes before.
    #[must_use]
    pub const fn before(self, before: &'static [&'static str]) -> Self {
        Feature { before, ..self }
    }

    /// The features it comes after.
    #[must_use]
    pub const fn after(self, after: &'static [&'static str]) -> Self {
        Feature { after, ..self }
    }
}

/// The call in which packets are handed over.
pub struct Call<'a> {
    counts: &'a mut [u64],
    thread: usize,
    now: u64,
}

impl Call<'_> {
    /// The calling thread, smaller than 64: 0 is the main thread.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// Nanoseconds on the router's clock.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Adds to one of [`Node::COUNTERS`], by position, without dropping a packet.
    pub fn count(&mut self, counter: u16, n: u64) {
        if let Some(count) = self.counts.get_mut(usize::from(counter)) {
            *count += n;
        }
    }
}

/// `shoal_node.process` of a node.
pub(crate) unsafe extern "C" fn process<N: Node>(context: *mut c_void, frame: *mut abi::Frame) {
    // SAFETY: the router gives back the context of the descriptor, which is a leaked `N`; nodes are only borrowed.
    let node = unsafe { &*context.cast::<N>() };
    // SAFETY: the router gives a frame that is this thread's until the call ends.
    let frame = unsafe { &mut *frame };
    // SAFETY: `counters` words, of which some may be missing when there are none at all.
    let counts = unsafe { slice(frame.counts, frame.counters) };
    // SAFETY: `count` packets.
    let packets = unsafe { slice(frame.packets, frame.count) };
    let mut call = Call { counts, thread: frame.thread as usize, now: frame.now };
    // Packets without a decision are dropped and counted by the router.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        for raw in packets {
            // SAFETY: as the router gave it, not looked at before.
            let next = node.packet(&mut unsafe { Packet::new(raw) }, &mut call);
            (raw.next, raw.error) = match next {
                Next::Feature => (abi::SHOAL_NEXT_FEATURE, 0),
                Next::Node(at) => (at, 0),
                Next::Drop(counter) => (abi::SHOAL_NEXT_DROP, counter),
            };
        }
    }));
}

/// # Safety
/// `n` values at `p` that are the caller's, or none.
unsafe fn slice<'a, T>(p: *mut T, n: u32) -> &'a mut [T] {
    if p.is_null() || n == 0 {
        return &mut [];
    }
    // SAFETY: the caller's.
    unsafe { core::slice::from_raw_parts_mut(p, n as usize) }
}

/// `shoal_node.trace` of a node.
pub(crate) unsafe extern "C" fn trace<N: Node>(
    context: *mut c_void,
    packet: *const abi::Packet,
    text: *mut c_char,
    room: usize,
) -> usize {
    // SAFETY: as in `process`.
    let node = unsafe { &*context.cast::<N>() };
    // SAFETY: the router's packet, of which this is a copy; the bytes are only read through it.
    let mut raw = unsafe { *packet };
    // SAFETY: as `process` left it.
    let view = unsafe { Packet::new(&mut raw) };
    let said = catch_unwind(AssertUnwindSafe(|| node.trace(&view))).ok().flatten().unwrap_or_default();
    let n = said.len().min(room);
    // SAFETY: `room` bytes at `text` are the caller's, and `said` has `n`.
    unsafe { core::ptr::copy_nonoverlapping(said.as_ptr(), text.cast(), n) };
    n
}
