//! What both planes know of one interface.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use crate::counters::XdpCounters;
use crate::filter::MOST_QUEUES;
use crate::send::Sender;

/// One interface, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    pub(crate) interfaces: IfTable,
    index: AtomicU32,
    /// A place for each queue there can be, filled from the first; empty while the kernel's interface is gone.
    tx: Box<[Mutex<Option<Sender>>]>,
    pub(crate) placement: TxPlacement,
    /// How many of them are open: an interface that comes back may have fewer than were asked for.
    open: AtomicUsize,
    /// Descriptors and indices of the kernel's that made no sense.
    pub(crate) malformed: AtomicU64,
    pub(crate) counters: XdpCounters,
}

/// A transmit queue, held; none if it is closed.
type SenderGuard<'a> = MutexGuard<'a, Option<Sender>>;

impl Port {
    pub(crate) fn new(interfaces: IfTable, counters: XdpCounters, senders: Vec<Sender>) -> Self {
        let (placement, open) = (TxPlacement::new(senders.len()), AtomicUsize::new(senders.len()));
        let mut senders = senders.into_iter();
        let tx = (0..MOST_QUEUES).map(|_| Mutex::new(senders.next())).collect();
        let (index, malformed) = (AtomicU32::new(SwIfIndex::NONE.0), AtomicU64::new(0));
        Port { interfaces, index, tx, placement, open, malformed, counters }
    }

    /// The interface's index: `NONE` until it has one.
    #[inline]
    pub(crate) fn index(&self) -> SwIfIndex {
        SwIfIndex(self.index.load(Ordering::Relaxed))
    }

    pub(crate) fn set_index(&self, index: SwIfIndex) {
        self.index.store(index.0, Ordering::Relaxed);
    }

    /// How many queues are open.
    fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The queue that a thread sends by.
    #[inline]
    fn queue_of(&self, thread: usize) -> usize {
        self.placement.queue(thread) % self.open().max(1)
    }

    /// The queue that a thread sends by, with its number; none when there are no queues. One that was closed between two
    /// looks has a successor.
    #[inline]
    pub(crate) fn sender_of(&self, thread: usize) -> Option<(usize, SenderGuard<'_>)> {
        loop {
            let number = self.queue_of(thread);
            let sender = self.sender(number)?;
            if sender.is_some() {
                return Some((number, sender));
            }
            if self.queue_of(thread) == number {
                return None;
            }
        }
    }

    /// A transmit queue. Threads share one only when there are fewer queues than threads, so the lock, taken once a
    /// frame, is free as a rule.
    #[inline]
    fn sender(&self, number: usize) -> Option<SenderGuard<'_>> {
        let queue = self.tx.get(number)?;
        Some(queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other queues in the place of the old ones; closes those that get no successor.
    pub(crate) fn replace_tx(&self, senders: Vec<Sender>) {
        self.open.store(senders.len(), Ordering::Relaxed);
        let mut senders = senders.into_iter();
        for number in 0..self.tx.len() {
            self.put(number, senders.next());
        }
    }

    /// Adds queues behind those that are open.
    pub(crate) fn add_tx(&self, senders: impl Iterator<Item = Sender>) {
        for sender in senders {
            let number = self.open();
            self.put(number, Some(sender));
            self.open.store(number + 1, Ordering::Relaxed);
        }
    }

    /// Closes all queues but the first ones; threads that sent by the others send by these.
    pub(crate) fn keep_tx(&self, left: usize) {
        self.open.store(left, Ordering::Relaxed);
        (left..self.tx.len()).for_each(|number| self.put(number, None));
    }

    fn put(&self, number: usize, sender: Option<Sender>) {
        let Some(slot) = self.tx.get(number) else { return };
        let old = std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), sender);
        // Closing waits for the kernel: not while a worker may wait for the lock.
        drop(old);
    }
}
