//! What both planes know of one interface.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use crate::counters::XdpCounters;
use crate::send::Sender;

/// One interface, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    pub(crate) interfaces: IfTable,
    index: AtomicU32,
    /// One for each queue; empty while the kernel's interface is gone.
    tx: Box<[Mutex<Option<Sender>>]>,
    pub(crate) placement: TxPlacement,
    /// How many of them are open: an interface that comes back may have fewer.
    open: AtomicUsize,
    /// Descriptors and indices of the kernel's that made no sense.
    pub(crate) malformed: AtomicU64,
    pub(crate) counters: XdpCounters,
}

impl Port {
    pub(crate) fn new(interfaces: IfTable, counters: XdpCounters, senders: Vec<Sender>) -> Self {
        let (placement, open) = (TxPlacement::new(senders.len()), AtomicUsize::new(senders.len()));
        let tx = senders.into_iter().map(|q| Mutex::new(Some(q))).collect();
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

    /// How many queues it was made with.
    pub(crate) fn queues(&self) -> usize {
        self.tx.len()
    }

    /// The queue that a thread sends by.
    #[inline]
    pub(crate) fn queue_of(&self, thread: usize) -> usize {
        self.placement.queue(thread) % self.open.load(Ordering::Relaxed).max(1)
    }

    /// A transmit queue. Threads share one only when there are fewer queues than threads, so the lock, taken once a
    /// frame, is free as a rule.
    #[inline]
    pub(crate) fn sender(&self, number: usize) -> Option<MutexGuard<'_, Option<Sender>>> {
        let queue = self.tx.get(number)?;
        Some(queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other queues in the place of the old ones; closes those that get no successor.
    pub(crate) fn replace_tx(&self, senders: Vec<Sender>) {
        self.open.store(senders.len(), Ordering::Relaxed);
        let mut senders = senders.into_iter();
        for slot in &self.tx {
            let old =
                std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), senders.next());
            // Closing waits for the kernel: not while a worker may wait for the lock.
            drop(old);
        }
    }
}
