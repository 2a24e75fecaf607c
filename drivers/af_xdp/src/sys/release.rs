//! When buffers that a socket had are the router's again.
//!
//! Closing a socket does not end everything at once. What the kernel copies to receive it copies while it holds the socket,
//! so with a driver that copies these buffers are free as soon as it is closed. What it sends, and with a driver that does
//! not copy all it has, may be in use until the kernel has taken the queue's memory away from the driver, in the background.
//! There is one sign of that: until then, no other socket can have the queue. So such buffers are kept, and another
//! socket tries to get the queue; when it does, they go back to their pool. Until then they have no owner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shoal_buffer::{Loans, Pool};
use shoal_link::IfIndex;

use super::socket::{RingKind, XskSocket};
use crate::Error;
use shoal_shm::{Mapping, Populate};

/// How long closing waits for frames that are being sent; as a rule there are none.
const PATIENCE: Duration = Duration::from_millis(100);
/// Memory of a socket that only asks for the queue: the smallest there can be.
const PAGE: usize = 4096;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left of a queue: the buffers it had lent. Dropped when its socket is closed.
pub(crate) struct Ended {
    /// A socket of the queue's network namespace that asks for the queue afterwards.
    probe: Option<XskSocket>,
    queue: (IfIndex, u32),
    zero_copy: bool,
    pool: Arc<Pool>,
    rx: Mutex<Option<Loans>>,
    tx: Mutex<Option<Loans>>,
}

impl Ended {
    pub(super) fn new(probe: XskSocket, queue: (IfIndex, u32), zero_copy: bool, pool: &Arc<Pool>) -> Self {
        let (rx, tx) = (Mutex::default(), Mutex::default());
        Ended { probe: Some(probe), queue, zero_copy, pool: Arc::clone(pool), rx, tx }
    }

    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Takes what the receiving half had lent.
    pub(super) fn keep_rx(&self, loans: Loans) {
        *lock(&self.rx) = Some(loans);
    }

    /// Takes what the transmitting half had lent.
    pub(super) fn keep_tx(&self, loans: Loans) {
        *lock(&self.tx) = Some(loans);
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let [rx, tx] = [&self.rx, &self.tx].map(|half| lock(half).take());
        let mut kept = Vec::new();
        for (loans, in_use) in [(rx, self.zero_copy), (tx, true)] {
            match loans {
                Some(loans) if in_use && !loans.is_empty() => kept.push(loans),
                Some(loans) => {
                    loans.settle();
                }
                None => {}
            }
        }
        if kept.is_empty() {
            return;
        }
        let Some(probe) = self.probe.take() else { return };
        let mut grave = PendingRelease { probe, memory: None, queue: self.queue, loans: kept };
        if !self.zero_copy && grave.wait() {
            return grave.settle();
        }
        lock(&PENDING_RELEASES).push(grave);
    }
}

/// Buffers that the kernel may still use.
struct PendingRelease {
    // Closed before its memory goes.
    probe: XskSocket,
    memory: Option<Mapping>,
    queue: (IfIndex, u32),
    loans: Vec<Loans>,
}

static PENDING_RELEASES: Mutex<Vec<PendingRelease>> = Mutex::new(Vec::new());

impl PendingRelease {
    /// Whether the kernel has ended its use of the queue's memory: another socket can have the queue, or its interface is
    /// gone, which the kernel forgets last.
    fn is_over(&mut self) -> Result<bool, Error> {
        if self.memory.is_none() {
            let memory = Mapping::anonymous(PAGE, Populate::Now).map_err(Error::os("mmap(packet memory)"))?;
            self.probe.register(&memory, PAGE as u32)?;
            for which in [RingKind::Fill, RingKind::Completion, RingKind::Rx] {
                self.probe.ring(which, 4)?;
            }
            self.memory = Some(memory);
        }
        let (ifindex, queue) = self.queue;
        match self.probe.bind(ifindex, queue, libc::XDP_COPY) {
            Ok(()) => Ok(true),
            Err(e) => match e.errno() {
                Some(libc::ENODEV | libc::ENXIO) => Ok(true),
                Some(libc::EBUSY) => Ok(false),
                _ => Err(e),
            },
        }
    }

    /// Waits a moment for that; whether it came.
    fn wait(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.is_over() {
                Ok(true) => return true,
                Ok(false) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
                _ => return false,
            }
        }
    }

    fn settle(self) {
        for loans in self.loans {
            loans.settle();
        }
    }
}

/// Gives back what the kernel has left alone since; tells how many buffers it may still use.
pub(crate) fn sweep() -> usize {
    let mut graves = lock(&PENDING_RELEASES);
    for mut grave in std::mem::take(&mut *graves) {
        match grave.is_over() {
            Ok(true) => grave.settle(),
            _ => graves.push(grave),
        }
    }
    graves.iter().flat_map(|grave| &grave.loans).map(Loans::len).sum()
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
