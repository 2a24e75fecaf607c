//! The way of one thread's events to the main thread: a ring that one writes and one reads, and what both know beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use rtrb::{Consumer, Producer, RingBuffer};
use shoal_graph::process::Sender;

/// Events that wait for the main thread, of each thread.
const EVENTS: usize = 1 << 13;

/// What a thread says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told<R> {
    /// A session is as this says.
    Put(R),
    /// It has ended.
    Gone(R),
    /// The walk of this number has seen all places of the thread.
    Walked(u32),
}

/// Wakes the main thread, once until it answers.
#[derive(Debug)]
pub struct Bell {
    wire: Sender<()>,
    is_rung: AtomicBool,
}

impl Bell {
    /// Rings by a channel that holds one message.
    pub fn new(wire: Sender<()>) -> Self {
        Bell { wire, is_rung: AtomicBool::new(false) }
    }

    /// Rings, unless it has rung.
    pub fn ring(&self) {
        // Either the main thread sees the event that was put in before, or this thread sees that it has answered: without a fence both
        // could miss it.
        fence(Ordering::SeqCst);
        if !self.is_rung.load(Ordering::Relaxed) && !self.is_rung.swap(true, Ordering::AcqRel) {
            // A full channel has rung already.
            let _ = self.wire.try_send(());
        }
    }

    /// The main thread looks now: what is told from here on rings again.
    pub fn answer(&self) {
        self.is_rung.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}

/// What both ends of a ring know beside its events.
#[derive(Debug)]
pub(super) struct RingShared {
    bell: Arc<Bell>,
    /// Sessions that could not be reported, and are reported when there is room.
    late: AtomicU64,
    is_late: AtomicBool,
    is_behind: AtomicBool,
    /// Ends that could not be reported: only who hears of all sessions knows of them.
    lost: AtomicU64,
    /// Whether the thread has been asked to walk on, and has not done so yet.
    is_asked: AtomicBool,
}

impl RingShared {
    /// One more session for which there was no room.
    pub(super) fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.is_late.store(true, Ordering::Relaxed);
    }

    /// Whether sessions are still to be reported for which there was no room.
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// All of them have been.
    pub(super) fn caught_up(&self) {
        self.is_late.store(false, Ordering::Relaxed);
    }

    /// One more end for which there was no room.
    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends that were lost, and sessions that were late.
    pub(super) fn missed(&self) -> (u64, u64) {
        (self.lost.load(Ordering::Relaxed), self.late.load(Ordering::Relaxed))
    }

    /// Whether more new sessions are due than the thread has looked at.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// It is so, or not.
    pub(super) fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// Whether the thread is free to be asked; it is asked now.
    pub(super) fn ask(&self) -> bool {
        !self.is_asked.swap(true, Ordering::AcqRel)
    }

    /// The thread has done what it was asked.
    pub(super) fn done(&self) {
        self.is_asked.store(false, Ordering::Release);
        self.bell.ring();
    }
}

/// The thread's end.
#[derive(Debug)]
pub(super) struct RingSender<R> {
    events: Producer<Told<R>>,
    shared: Arc<RingShared>,
}

/// The main thread's end.
#[derive(Debug)]
pub(super) struct RingReceiver<R> {
    events: Consumer<Told<R>>,
    shared: Arc<RingShared>,
}

/// Both ends of an empty ring.
pub(super) fn ring<R>(bell: Arc<Bell>) -> (RingSender<R>, RingReceiver<R>) {
    let (sender, receiver) = RingBuffer::new(EVENTS);
    let shared = Arc::new(RingShared {
        bell,
        late: AtomicU64::new(0),
        is_late: AtomicBool::new(false),
        is_behind: AtomicBool::new(false),
        lost: AtomicU64::new(0),
        is_asked: AtomicBool::new(false),
    });
    let of_thread = RingSender { events: sender, shared: Arc::clone(&shared) };
    (of_thread, RingReceiver { events: receiver, shared })
}

/// Room for so many events that a walk may use: half of what is free, as the rest is for what happens meanwhile.
fn half(free: usize) -> usize {
    free / 2
}

impl<R> RingSender<R> {
    pub(super) fn shared(&self) -> &RingShared {
        &self.shared
    }

    /// Tells something, and never waits; whether there was room.
    pub(super) fn tell(&mut self, told: Told<R>) -> bool {
        let is_told = self.events.push(told).is_ok();
        self.shared.bell.ring();
        is_told
    }

    pub(super) fn room(&self) -> usize {
        half(self.events.slots())
    }
}

impl<R> RingReceiver<R> {
    pub(super) fn shared(&self) -> &Arc<RingShared> {
        &self.shared
    }

    /// What was told first, if there is anything.
    pub(super) fn take(&mut self) -> Option<Told<R>> {
        self.events.pop().ok()
    }

    /// Whether no event waits.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn room(&self) -> usize {
        half(EVENTS.saturating_sub(self.events.slots()))
    }
}
