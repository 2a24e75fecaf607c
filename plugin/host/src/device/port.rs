//! What both planes know of one device.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use crate::sys::{Driver, Slots};

/// Bytes for the pieces of superframes that the device does not cut.
const STORE: usize = 128 << 10;

/// One transmit queue: slots, and where superframes are cut.
pub(crate) struct TxQueue {
    pub(crate) slots: Slots,
    pub(crate) store: Box<[u8]>,
}

impl TxQueue {
    fn new() -> Self {
        TxQueue { slots: Slots::new(), store: vec![0; STORE].into() }
    }
}

/// One device, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    pub(crate) driver: Arc<Driver>,
    /// The plugin's number of it.
    pub(crate) number: u32,
    pub(crate) interfaces: IfTable,
    pub(crate) checksum: bool,
    pub(crate) tso: bool,
    pub(crate) placement: TxPlacement,
    index: AtomicU32,
    tx: Box<[Mutex<TxQueue>]>,
    /// Polled and sent to: admin up, and not gone.
    running: AtomicBool,
    /// Packets the device itself has lost.
    pub(crate) missed: AtomicU64,
}

impl Port {
    pub(crate) fn new(
        driver: Arc<Driver>,
        (number, tx_queues): (u32, usize),
        (checksum, tso): (bool, bool),
        interfaces: IfTable,
    ) -> Self {
        Port {
            driver,
            number,
            interfaces,
            checksum,
            tso,
            placement: TxPlacement::new(tx_queues),
            index: AtomicU32::new(SwIfIndex::NONE.0),
            tx: (0..tx_queues).map(|_| Mutex::new(TxQueue::new())).collect(),
            running: AtomicBool::new(false),
            missed: AtomicU64::new(0),
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

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// A transmit queue, none while the device does not run. Threads share one only when there are fewer queues than
    /// threads, so the lock, taken once a frame, is free as a rule.
    #[inline]
    pub(crate) fn tx_queue(&self, number: usize) -> Option<MutexGuard<'_, TxQueue>> {
        let queue = self.tx.get(number)?.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked with the lock in hand: see `stop`.
        self.is_running().then_some(queue)
    }

    /// Ends all sending, for good: whoever sends now has done so when this returns.
    pub(crate) fn stop(&self) {
        self.set_running(false);
        for queue in &self.tx {
            drop(queue.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
