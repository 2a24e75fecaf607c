//! What both planes know of one memif.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_graph::process::Sender;
use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use crate::config::MOST_QUEUES;
use crate::tx::TxQueue;

/// One memif, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    pub(crate) interfaces: IfTable,
    index: AtomicU32,
    tx: Box<[Mutex<Option<TxQueue>>]>,
    /// Transmit queues that are connected.
    connected: AtomicUsize,
    pub(crate) placement: TxPlacement,
    /// The peer has written what cannot be.
    broken: AtomicBool,
    news: Sender<SwIfIndex>,
    pub(crate) facts: Facts,
}

/// What the data plane noticed, for `show memif`.
#[derive(Default)]
pub(crate) struct Facts {
    /// How often the peer was woken.
    pub(crate) kicks: AtomicU64,
    /// How often the peer woke a queue.
    pub(crate) interrupts: AtomicU64,
    /// Packets whose descriptors made no sense.
    pub(crate) bad: AtomicU64,
}

impl Port {
    pub(crate) fn new(interfaces: IfTable, tx_queues: usize, news: Sender<SwIfIndex>) -> Self {
        Port {
            interfaces,
            index: AtomicU32::new(SwIfIndex::NONE.0),
            tx: (0..MOST_QUEUES).map(|_| Mutex::new(None)).collect(),
            connected: AtomicUsize::new(0),
            placement: TxPlacement::new(tx_queues),
            broken: AtomicBool::new(false),
            news,
            facts: Facts::default(),
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

    /// The transmit queue a thread uses, of those there are: the peer may have fewer than were asked for. Threads share
    /// one only when there are fewer queues than threads, so the lock, taken once a frame, is free as a rule.
    #[inline]
    pub(crate) fn tx_queue(&self, thread: usize) -> Option<(usize, MutexGuard<'_, Option<TxQueue>>)> {
        let there = self.connected.load(Ordering::Relaxed);
        let number = self.placement.queue(thread).checked_rem(there)?;
        Some((number, self.tx.get(number)?.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Puts other transmit queues in the place of the old ones.
    pub(crate) fn replace_tx(&self, queues: Vec<TxQueue>) {
        self.connected.store(queues.len().min(self.tx.len()), Ordering::Relaxed);
        let mut queues = queues.into_iter();
        for slot in &self.tx {
            let old =
                std::mem::replace(&mut *slot.lock().unwrap_or_else(PoisonError::into_inner), queues.next());
            // Unmapping takes the kernel a while: not while a worker may wait for the lock.
            drop(old);
        }
    }

    /// A queue has found that the peer writes what cannot be; the control plane learns it once and ends the connection.
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
