//! What both planes know of one TAP.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_graph::process::Sender;
use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use crate::pair::Sender as TxQueue;
use crate::{Coalesce, Mode, Offload};

/// One TAP, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    pub(crate) interfaces: IfTable,
    index: AtomicU32,
    tx: Box<[Mutex<TxQueue>]>,
    pub(crate) placement: TxPlacement,
    /// The host has deleted the interface.
    gone: AtomicBool,
    news: Sender<SwIfIndex>,
    pub(crate) mode: Mode,
    /// What the host takes, by its number.
    offload: AtomicU8,
    /// Whether sent packets are merged.
    coalesce: AtomicBool,
    /// Frames that were cut short or whose vnet header was wrong.
    pub(crate) refused: AtomicU64,
    /// What happened in rings.
    pub(crate) rings: RingFacts,
}

/// What happened in a TAP's rings, for `show tap`.
#[derive(Debug, Default)]
pub(crate) struct RingFacts {
    /// Entries the kernel gave back that make no sense.
    pub(crate) malformed: AtomicU64,
    /// How often the kernel was woken.
    pub(crate) kicks: AtomicU64,
    /// How often it woke a receive queue.
    pub(crate) interrupts: AtomicU64,
}

impl Port {
    pub(crate) fn new(interfaces: IfTable, tx: Vec<TxQueue>, news: Sender<SwIfIndex>, mode: Mode) -> Self {
        let placement = TxPlacement::new(tx.len());
        let tx = tx.into_iter().map(Mutex::new).collect();
        let (index, gone) = (AtomicU32::new(SwIfIndex::NONE.0), AtomicBool::new(false));
        let (offload, coalesce) = (AtomicU8::default(), AtomicBool::default());
        let (refused, rings) = (AtomicU64::new(0), RingFacts::default());
        Port { interfaces, index, tx, placement, gone, news, mode, offload, coalesce, refused, rings }
    }

    /// What the host takes.
    #[inline]
    pub(crate) fn offload(&self) -> Offload {
        Offload::from_number(self.offload.load(Ordering::Relaxed))
    }

    pub(crate) fn set_offload(&self, offload: Offload) {
        self.offload.store(offload as u8, Ordering::Relaxed);
    }

    /// Whether sent packets are merged, when the host takes large ones.
    #[inline]
    pub(crate) fn coalesce(&self) -> Coalesce {
        if self.coalesce.load(Ordering::Relaxed) { Coalesce::On } else { Coalesce::Off }
    }

    pub(crate) fn set_coalesce(&self, coalesce: Coalesce) {
        self.coalesce.store(coalesce == Coalesce::On, Ordering::Relaxed);
    }

    /// The interface's index: `NONE` until it has one.
    #[inline]
    pub(crate) fn index(&self) -> SwIfIndex {
        SwIfIndex(self.index.load(Ordering::Relaxed))
    }

    pub(crate) fn set_index(&self, index: SwIfIndex) {
        self.index.store(index.0, Ordering::Relaxed);
    }

    pub(crate) fn tx_queues(&self) -> usize {
        self.tx.len()
    }

    /// A transmit queue. Threads share one only when there are fewer queues than threads, so the lock, taken once a
    /// frame, is free as a rule.
    #[inline]
    pub(crate) fn tx_queue(&self, number: usize) -> Option<MutexGuard<'_, TxQueue>> {
        let queue = self.tx.get(number)?;
        Some(queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends by another queue from now on.
    pub(crate) fn replace_tx(&self, number: usize, queue: TxQueue) {
        if let Some(slot) = self.tx.get(number) {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = queue;
        }
    }

    /// Whether the host has deleted the interface.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// A queue has noticed that the host deleted the interface; the control plane learns it once.
    #[cold]
    pub(crate) fn set_gone(&self) {
        if !self.gone.swap(true, Ordering::Relaxed) {
            // Full: the control plane has news enough to look at all of them.
            let _ = self.news.try_send(self.index());
        }
    }
}
