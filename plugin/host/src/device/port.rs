//! What both planes know of one device.

use std::fmt::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use shoal_interface::{IfTable, SwIfIndex, TxPlacement};

use super::wake::SleepOutcome;
use crate::sys::{Driver, MainThread, OpenDevice, Slots, TxHandle, copy};

/// Bytes for the pieces of superframes that the device does not cut.
const STORE: usize = 128 << 10;

/// One transmit queue: slots, and where superframes are cut.
pub(crate) struct TxQueue {
    pub(crate) handle: TxHandle,
    pub(crate) slots: Slots,
    pub(crate) store: Box<[u8]>,
}

impl TxQueue {
    fn new(handle: TxHandle) -> Self {
        TxQueue { handle, slots: Slots::new(), store: vec![0; STORE].into() }
    }
}

/// What both planes know of one receive queue.
#[derive(Default)]
struct RxFacts {
    /// Our copy of the descriptor that wakes its thread; `None` inside when the plugin's is none.
    wait: OnceLock<Option<OwnedFd>>,
    /// Times that it reported packets.
    interrupts: AtomicU64,
    /// Of these, those without a packet.
    empty: AtomicU64,
    /// Times that there were packets and it reported none.
    missed: AtomicU64,
    /// Times that it was left alone.
    alone: AtomicU64,
}

/// One device, shared by its receive queues, its transmit node and the control plane.
pub(crate) struct Port {
    /// Whose it is, for those who name it.
    pub(crate) driver: Arc<Driver>,
    pub(crate) interfaces: IfTable,
    pub(crate) checksum: bool,
    pub(crate) tso: bool,
    pub(crate) placement: TxPlacement,
    index: AtomicU32,
    tx: Box<[Mutex<TxQueue>]>,
    rx: Box<[RxFacts]>,
    /// Polled and sent to: admin up, and not gone.
    running: AtomicBool,
    /// Packets the device itself has lost.
    pub(crate) missed: AtomicU64,
}

impl Port {
    pub(crate) fn new(
        device: &mut OpenDevice,
        rx_queues: usize,
        (checksum, tso): (bool, bool),
        interfaces: IfTable,
    ) -> Self {
        let tx: Box<[_]> =
            std::iter::from_fn(|| device.next_tx()).map(|handle| Mutex::new(TxQueue::new(handle))).collect();
        Port {
            driver: Arc::clone(device.driver()),
            interfaces,
            checksum,
            tso,
            placement: TxPlacement::new(tx.len()),
            index: AtomicU32::new(SwIfIndex::NONE.0),
            rx: (0..rx_queues).map(|_| RxFacts::default()).collect(),
            tx,
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

    /// Asks the plugin for descriptors of queues that have none yet; whether all have one.
    pub(crate) fn ask_waits(&self, main: MainThread<'_>, device: &OpenDevice) -> bool {
        let mut all = true;
        for (queue, facts) in self.rx.iter().enumerate() {
            let Some(fd) = device.wait(main, queue as u32) else {
                all = false;
                continue;
            };
            let copied = facts.wait.get_or_init(|| {
                let copied = copy(fd);
                if copied.is_none() {
                    let (driver, number) = (&self.driver.name, device.number());
                    tracing::warn!(
                        "{driver}: descriptor {fd} of receive queue {queue} of device {number} is not open, so the queue \
                         is looked at once a millisecond when idle"
                    );
                }
                copied
            });
            all &= copied.is_some();
        }
        all
    }

    /// The descriptor that wakes a receive queue's thread.
    #[inline]
    pub(crate) fn wait(&self, queue: u32) -> Option<BorrowedFd<'_>> {
        Some(self.rx.get(queue as usize)?.wait.get()?.as_ref()?.as_fd())
    }

    /// Counts what a sleep came to.
    pub(crate) fn count_wake(&self, queue: u32, came: SleepOutcome) {
        let Some(facts) = self.rx.get(queue as usize) else { return };
        let add = |to: &AtomicU64| to.fetch_add(1, Ordering::Relaxed);
        match came {
            SleepOutcome::Interrupt => add(&facts.interrupts),
            SleepOutcome::Empty => add(&facts.empty),
            SleepOutcome::Enough => {
                add(&facts.empty);
                add(&facts.alone)
            }
            SleepOutcome::Missed => add(&facts.missed),
        };
    }

    /// A line for each receive queue: how it wakes its thread.
    pub(crate) fn describe_waits(&self, main: MainThread<'_>, device: &OpenDevice) -> String {
        let mut lines = String::new();
        for (queue, facts) in self.rx.iter().enumerate() {
            let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
            let end = if queue == 0 { "" } else { "\n" };
            // Writing to a String cannot fail.
            let _ = write!(lines, "{end}rx queue {queue}: ");
            let copied = matches!(facts.wait.get(), Some(Some(_)));
            if !copied || device.wait(main, queue as u32).is_none() {
                lines.push_str("no interrupts, looked at once a millisecond when idle");
                continue;
            }
            let (empty, missed) = (of(&facts.empty), of(&facts.missed));
            let all = of(&facts.interrupts) + empty;
            let _ = write!(lines, "interrupts {all}, without packets {empty}, packets without one {missed}");
            if of(&facts.alone) > 0 {
                let _ = write!(lines, ", left alone for a second {}", of(&facts.alone));
            }
        }
        lines
    }

    /// Ends all sending, for good: threads that send now have done so when this returns.
    pub(crate) fn stop(&self) {
        self.set_running(false);
        for queue in &self.tx {
            drop(queue.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
