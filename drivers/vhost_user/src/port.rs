//! What both planes know of one interface.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_graph::process::Sender;
use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use crate::session::MOST_PAIRS;
use crate::tx::TxQueue;

/// One interface, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    pub(crate) interfaces: IfTable,
    index: AtomicU32,
    tx: Box<[Mutex<Option<TxQueue>>]>,
    /// The first so many transmit queues are there.
    connected: AtomicUsize,
    pub(crate) placement: TxPlacement,
    /// The guest has written what cannot be.
    broken: AtomicBool,
    news: Sender<SwIfIndex>,
}

impl Port {
    pub(crate) fn new(interfaces: IfTable, news: Sender<SwIfIndex>) -> Self {
        Port {
            interfaces,
            index: AtomicU32::new(SwIfIndex::NONE.0),
            tx: (0..MOST_PAIRS).map(|_| Mutex::new(None)).collect(),
            connected: AtomicUsize::new(0),
            placement: TxPlacement::new(MOST_PAIRS),
            broken: AtomicBool::new(false),
            news,
        }
    }

    /// The interface's index: `NONE` until it has one.
    #[inline]
    pub(crate) fn index(&self) -> SwIfIndex {
        SwIfIndex(self.index.load(Ordering::Relaxed))
    }

    pub(crate) fn set_index(&self, index: SwIfIndex) {
        self.index.store(index.0, Ordering::Relaxed);
    }

    /// The transmit queue a thread uses, of those the guest has. Threads share one only when there are fewer queues than
    /// threads, so the lock, taken once a frame, is free as a rule.
    #[inline]
    pub(crate) fn tx_queue(&self, thread: usize) -> Option<(usize, MutexGuard<'_, Option<TxQueue>>)> {
        let there = self.connected.load(Ordering::Relaxed);
        let number = self.placement.queue(thread).checked_rem(there)?;
        Some((number, self.lock(number)?))
    }

    fn lock(&self, number: usize) -> Option<MutexGuard<'_, Option<TxQueue>>> {
        Some(self.tx.get(number)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another transmit queue in the place of the old one, or none.
    pub(crate) fn set_tx(&self, number: usize, queue: Option<TxQueue>) {
        let Some(mut slot) = self.lock(number) else { return };
        let old = std::mem::replace(&mut *slot, queue);
        drop(slot);
        // Unmapping takes the kernel a while: not while a worker may wait for the lock.
        drop(old);
        let there = |number: &usize| self.lock(*number).is_some_and(|slot| slot.is_some());
        self.connected.store((0..self.tx.len()).take_while(there).count(), Ordering::Relaxed);
    }

    /// How many transmit queues are in use.
    pub(crate) fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// A queue has found that the guest writes what cannot be; the control plane learns it once and ends the
    /// connection.
    #[cold]
    pub(crate) fn set_broken(&self) {
        if !self.broken.swap(true, Ordering::Relaxed) {
            // Full: the control plane has news enough to look at all of them.
            let _ = self.news.try_send(self.index());
        }
    }

    /// Whether a queue has found that since the last time this was asked.
    pub(crate) fn take_broken(&self) -> bool {
        self.broken.swap(false, Ordering::Relaxed)
    }
}
