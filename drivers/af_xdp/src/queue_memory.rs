//! The two ways in which a queue's packets lie in memory, behind one face.

use std::os::fd::{AsFd, BorrowedFd};

use crate::Error;
use crate::sys::XskStats;
use crate::sys::lent::{LentRx, LentTx};
use crate::sys::queue::{XskHandle, XskRx, XskTx};

/// A receiving half.
pub(crate) enum Rx {
    /// Frames are copied from memory of the queue's own.
    Own(XskRx),
    /// Frames lie in buffers.
    Lent(LentRx),
}

/// A transmitting half.
pub(crate) enum Tx {
    /// Packets are copied to memory of the queue's own.
    Own(XskTx),
    /// Packets are sent from their buffers.
    Lent(LentTx),
}

impl Rx {
    /// Whether a frame is there.
    #[inline]
    pub(crate) fn is_ready(&mut self) -> bool {
        match self {
            Rx::Own(rx) => rx.rings.is_ready(),
            Rx::Lent(rx) => rx.rings.is_ready(),
        }
    }

    /// Lets the kernel see what was read and what is free, and wakes it if it sleeps.
    pub(crate) fn flush(&mut self) {
        match self {
            Rx::Own(rx) => rx.flush(),
            Rx::Lent(rx) => rx.rings.flush(),
        }
    }

    /// Whether frames wait in the transmit ring until the kernel is asked again, which `flush` does.
    pub(crate) fn is_stuck(&self) -> bool {
        match self {
            Rx::Own(rx) => rx.rings.is_stuck(),
            Rx::Lent(rx) => rx.rings.is_stuck(),
        }
    }

    /// Descriptors and indices that made no sense.
    pub(crate) fn malformed(&self) -> u64 {
        match self {
            Rx::Own(rx) => rx.rings.malformed(),
            Rx::Lent(rx) => rx.rings.malformed(),
        }
    }

    /// The kernel's counters.
    pub(crate) fn stats(&self) -> Result<XskStats, Error> {
        match self {
            Rx::Own(rx) => rx.rings.stats(),
            Rx::Lent(rx) => rx.rings.stats(),
        }
    }

    /// The control plane's view of the queue.
    pub(crate) fn handle(&self) -> XskHandle {
        match self {
            Rx::Own(rx) => rx.rings.handle(),
            Rx::Lent(rx) => rx.rings.handle(),
        }
    }

    /// Whether the driver reads and writes packet memory itself.
    pub(crate) fn is_zero_copy(&self) -> bool {
        match self {
            Rx::Own(rx) => rx.rings.is_zero_copy(),
            Rx::Lent(rx) => rx.rings.is_zero_copy(),
        }
    }

    /// Whether packet memory is the router's buffers.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self, Rx::Lent(_))
    }
}

impl AsFd for Rx {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Rx::Own(rx) => rx.rings.as_fd(),
            Rx::Lent(rx) => rx.rings.as_fd(),
        }
    }
}
