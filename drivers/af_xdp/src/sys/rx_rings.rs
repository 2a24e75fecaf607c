//! The rings of a receiving half: received frames, and what is free for the next ones.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::queue::{Shared, XskConfig, XskHandle};
use super::ring::{Consumer, Layout, Producer};
use super::socket::XskStats;
use crate::Error;
use shoal_shm::Mapping;

/// Both rings, whatever the memory, `M`, is that their addresses lie in.
pub(crate) struct RxRings<M> {
    pub(super) ring: Consumer,
    pub(super) fill: Producer,
    /// Descriptors that made no sense.
    pub(super) malformed: u64,
    busy_poll: bool,
    zero_copy: bool,
    // Dropped last: the socket lives as long as its rings.
    pub(super) shared: Arc<Shared<M>>,
}

impl<M> RxRings<M> {
    pub(super) fn new(
        [rx, fill]: [(Mapping, Layout); 2],
        config: &XskConfig,
        zero_copy: bool,
        shared: &Arc<Shared<M>>,
    ) -> Self {
        RxRings {
            ring: Consumer::new(rx.0, rx.1),
            fill: Producer::new(fill.0, fill.1),
            malformed: 0,
            busy_poll: config.busy_poll.is_some(),
            zero_copy,
            shared: Arc::clone(shared),
        }
    }

    /// Lets the kernel see what was read and what is free, and wakes it if it sleeps.
    pub(crate) fn flush(&mut self) {
        self.ring.publish();
        self.fill.publish();
        if self.busy_poll || (self.zero_copy && self.fill.needs_wakeup()) {
            self.shared.socket.wake_rx();
        }
        self.shared.unstick();
    }

    /// Whether frames wait in the transmit ring until the kernel is asked again.
    pub(crate) fn is_stuck(&self) -> bool {
        self.shared.stuck.load(Ordering::Relaxed)
    }

    /// Whether a frame is there, as far as can be told without taking one.
    #[inline]
    pub(crate) fn is_ready(&mut self) -> bool {
        self.ring.is_ready()
    }

    /// Descriptors and indices that made no sense; always 0 with a sane kernel.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed + self.ring.faults() + self.fill.faults()
    }

    /// The kernel's counters.
    pub(crate) fn stats(&self) -> Result<XskStats, Error> {
        self.shared.socket.stats()
    }

    /// Whether the driver reads and writes packet memory itself.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }
}

impl<M: Send + Sync + 'static> RxRings<M> {
    /// The control plane's view of the queue.
    pub(crate) fn handle(&self) -> XskHandle {
        XskHandle(Arc::clone(&self.shared) as _)
    }
}

impl<M> AsFd for RxRings<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.socket.fd()
    }
}
