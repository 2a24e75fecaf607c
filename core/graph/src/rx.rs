//! Receive queues: where packets enter the graph.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_infra::Padded;

use crate::FrameCx;
use crate::clock::Time;

/// How a thread waits for a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RxMode {
    /// Never wait: look all the time.
    Polling,
    /// Sleep as soon as there is nothing.
    Interrupt,
    /// Look while packets come, nap when they stop, sleep when they stay away.
    #[default]
    Adaptive,
}

impl fmt::Display for RxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RxMode::Polling => "polling",
            RxMode::Interrupt => "interrupt",
            RxMode::Adaptive => "adaptive",
        })
    }
}

impl FromStr for RxMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "polling" => Ok(RxMode::Polling),
            "interrupt" => Ok(RxMode::Interrupt),
            "adaptive" => Ok(RxMode::Adaptive),
            _ => Err(format!("`{text}' is no receive mode: polling, interrupt or adaptive")),
        }
    }
}

/// A queue of received packets, owned by the thread it is placed on and moved between threads as a whole.
pub trait RxQueue: Send {
    /// Takes up to a frame's worth of packets and sends them on; tells how many.
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize;

    /// Becomes readable when packets come, so that the thread may sleep. `None`: look again after a nap.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether nothing can be trusted to wake the thread for its packets, so that it naps before it sleeps. For a queue
    /// whose descriptor is armed only when the thread goes to sleep.
    fn is_mute(&self) -> bool {
        self.wait_fd().is_none()
    }

    /// When the queue has work of its own to do next (a paced generator); `None` when only packets bring work.
    fn deadline(&self, _now: Time) -> Option<Time> {
        None
    }

    /// Whether the queue has nothing to wait for at all (a stopped generator).
    fn is_parked(&self) -> bool {
        false
    }
}

/// What a queue has brought, counted by the thread it is placed on and kept when it moves.
#[derive(Debug, Default)]
pub struct QueueCount(Padded<(AtomicU64, AtomicU64)>);

impl QueueCount {
    /// Only one thread at a time adds: the one that has the queue.
    #[inline(always)]
    pub(crate) fn add(&self, packets: usize) {
        let add =
            |to: &AtomicU64, n: u64| to.store(to.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        let (calls, all) = &*self.0;
        add(calls, 1);
        add(all, packets as u64);
    }

    /// Looks at the queue that found something, and packets found.
    pub fn get(&self) -> (u64, u64) {
        let (calls, packets) = &*self.0;
        (calls.load(Ordering::Relaxed), packets.load(Ordering::Relaxed))
    }
}

/// A receive queue's number, for placement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct QueueId(pub u32);
