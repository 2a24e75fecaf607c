//! What other threads may know of a thread, and how they reach it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::Worker;
use crate::process::Wake;

/// Work for a thread, done between two rounds of its loop.
pub(crate) type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// The shared face of one thread.
pub struct ThreadShared {
    /// Its number: 0 is the main thread.
    pub index: usize,
    /// Its name, as VPP's: `vpp_main`, `vpp_wk_0`.
    pub name: String,
    mail: Mutex<Vec<Job>>,
    has_mail: AtomicBool,
    asleep: AtomicBool,
    stop: AtomicBool,
    wake: EventFd,
    /// Rounds of the loop.
    pub loops: AtomicU64,
    /// Clocks spent in rounds that found packets.
    pub busy: AtomicU64,
    /// Clock reading when `busy` began to count.
    pub since: AtomicU64,
    /// The kernel's number for the thread.
    pub lwp: AtomicI32,
    /// The processor it is pinned to, `u32::MAX` when it is not.
    pub cpu: AtomicU32,
}

impl ThreadShared {
    pub(crate) fn new(index: usize, name: String) -> std::io::Result<Arc<Self>> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Arc::new(ThreadShared {
            index,
            name,
            mail: Mutex::default(),
            has_mail: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: EventFd::from_value_and_flags(0, flags)?,
            loops: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            since: AtomicU64::new(crate::clock::tsc()),
            lwp: AtomicI32::new(0),
            cpu: AtomicU32::new(u32::MAX),
        }))
    }

    /// Leaves work for the thread and wakes it.
    pub(crate) fn post(&self, job: Job) {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        self.has_mail.store(true, Ordering::SeqCst);
        self.wake_if_asleep();
    }

    #[inline(always)]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    pub(crate) fn take_mail(&self) -> Vec<Job> {
        self.has_mail.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake_if_asleep(&self) {
        // Orders the work left for the thread before the look at whether it sleeps; the thread does the reverse.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        // Full means that a wake-up is under way already.
        let _ = self.wake.write(1);
    }

    pub(crate) fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        if !asleep {
            let _ = self.wake.read();
        }
    }

    /// Whether the thread waits to be woken: by a queue, another thread or a deadline.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Makes the thread end once it has done the work left for it so far.
    pub(crate) fn ask_to_stop_after_mail(self: &Arc<Self>) {
        let face = Arc::clone(self);
        self.post(Box::new(move |_| face.stop.store(true, Ordering::SeqCst)));
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Part of the time, in percent, that the thread had packets in hand since the counters were cleared.
    pub fn busy_percent(&self) -> f64 {
        let all = crate::clock::tsc().wrapping_sub(self.since.load(Ordering::Relaxed));
        if all == 0 {
            0.0
        } else {
            (self.busy.load(Ordering::Relaxed) as f64 / all as f64 * 100.0).min(100.0)
        }
    }

    /// Starts the busy percentage anew.
    pub fn clear_busy(&self) {
        self.busy.store(0, Ordering::Relaxed);
        self.loops.store(0, Ordering::Relaxed);
        self.since.store(crate::clock::tsc(), Ordering::Relaxed);
    }
}

impl Wake for ThreadShared {
    fn wake(&self) {
        ThreadShared::wake(self);
    }
}
