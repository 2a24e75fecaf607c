//! What other threads may know of a thread, and how they reach it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use shoal_infra::Padded;

use crate::Worker;
use crate::process::Wake;
use crate::topology::{Change, Changes};

/// Work for a thread, done between two rounds of its loop.
pub(crate) type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// What a thread counts of its own loop. It alone writes, with a plain load and store, and never resets them: readers
/// take the difference of two readings.
#[derive(Debug, Default)]
pub struct Work {
    loops: AtomicU64,
    busy: AtomicU64,
    packets: AtomicU64,
    handed: AtomicU64,
}

/// A look at a thread's [`Work`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Rounds of the loop.
    pub loops: u64,
    /// Clocks spent in rounds that found packets.
    pub busy: u64,
    /// Packets taken, from queues and from other threads.
    pub packets: u64,
    /// Of those, the ones from other threads.
    pub handed: u64,
}

impl Load {
    /// What was done since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Load) -> Load {
        Load {
            loops: self.loops.wrapping_sub(earlier.loops),
            busy: self.busy.wrapping_sub(earlier.busy),
            packets: self.packets.wrapping_sub(earlier.packets),
            handed: self.handed.wrapping_sub(earlier.handed),
        }
    }
}

impl Work {
    /// Adds what a round has done. Only the thread itself does.
    #[inline(always)]
    pub(crate) fn add(&self, round: Load) {
        let add =
            |to: &AtomicU64, n: u64| to.store(to.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        add(&self.loops, round.loops);
        // Most rounds of a thread that waits find nothing.
        if round.busy != 0 {
            add(&self.busy, round.busy);
            add(&self.packets, round.packets);
            add(&self.handed, round.handed);
        }
    }

    fn look(&self) -> Load {
        Load {
            loops: self.loops.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            packets: self.packets.load(Ordering::Relaxed),
            handed: self.handed.load(Ordering::Relaxed),
        }
    }
}

/// The shared face of one thread.
///
/// Three kinds of fields, on cache lines of their own each: what never changes or only between lives of the thread;
/// what others write now and then and the thread reads in each round (`mail`, `stop`) with what it writes when it goes
/// to rest and others read with each frame for it (`asleep`); what it writes in each round and others read when
/// somebody asks (`work`).
pub struct ThreadShared {
    /// Its number: 0 is the main thread.
    pub index: usize,
    /// Its name, as VPP's: `vpp_main`, `vpp_wk_0`.
    pub name: String,
    wake: EventFd,
    signals: Padded<Signals>,
    work: Padded<Work>,
    /// The value of `work` when the busy percentage was reset, and the clock's reading then.
    cleared: Mutex<(Load, u64)>,
    /// Set by others who have found the thread stuck; it need not take it back, see [`ThreadShared::stuck_for`].
    stall: Mutex<Option<Stall>>,
    /// The thread has run its last round.
    pub(crate) ended: Arc<AtomicBool>,
    /// The kernel's number for the thread.
    pub lwp: AtomicI32,
    /// The processor it is pinned to, `u32::MAX` when it is not.
    pub cpu: AtomicU32,
}

/// A thread was found stuck.
#[derive(Clone, Copy)]
struct Stall {
    /// Rounds it had done: with one more the stall is over.
    loops: u64,
    since: Instant,
}

/// What others have left for a thread.
#[derive(Default)]
struct Mailbox {
    /// What has changed in the graph; it comes before the jobs, which may be about what is new in it. Of a node that
    /// changed several times only the last change is kept, so a thread that does not move costs no more than the graph.
    change: Option<Changes>,
    jobs: Vec<Job>,
}

/// What is written rarely and read in each round or with each frame.
struct Signals {
    has_mail: AtomicBool,
    asleep: AtomicBool,
    stop: AtomicBool,
    mail: Mutex<Mailbox>,
}

impl ThreadShared {
    pub(crate) fn new(index: usize, name: String) -> std::io::Result<Arc<Self>> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Arc::new(ThreadShared {
            index,
            name,
            wake: EventFd::from_value_and_flags(0, flags)?,
            signals: Padded(Signals {
                has_mail: AtomicBool::new(false),
                asleep: AtomicBool::new(false),
                stop: AtomicBool::new(false),
                mail: Mutex::default(),
            }),
            work: Padded::default(),
            cleared: Mutex::new((Load::default(), crate::clock::tsc())),
            stall: Mutex::default(),
            ended: Arc::default(),
            lwp: AtomicI32::new(0),
            cpu: AtomicU32::new(u32::MAX),
        }))
    }

    /// Leaves work for the thread and wakes it.
    pub(crate) fn post(&self, job: Job) {
        self.leave(|mail| mail.jobs.push(job));
    }

    /// Leaves what has changed in the graph, on top of what is not taken over yet.
    pub(crate) fn leave_change(&self, change: &Change) {
        self.leave(|mail| match &mut mail.change {
            Some(changes) => changes.add(change),
            none => *none = Some(Changes::of(change)),
        });
    }

    fn leave(&self, put: impl FnOnce(&mut Mailbox)) {
        put(&mut self.signals.mail.lock().unwrap_or_else(PoisonError::into_inner));
        self.signals.has_mail.store(true, Ordering::SeqCst);
        self.wake_if_asleep();
    }

    #[inline(always)]
    pub(crate) fn has_mail(&self) -> bool {
        self.signals.has_mail.load(Ordering::Relaxed)
    }

    pub(crate) fn take_mail(&self) -> (Option<Changes>, Vec<Job>) {
        self.signals.has_mail.store(false, Ordering::SeqCst);
        let mail = std::mem::take(&mut *self.signals.mail.lock().unwrap_or_else(PoisonError::into_inner));
        (mail.change, mail.jobs)
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake_if_asleep(&self) {
        // Orders the work left for the thread before the look at whether it sleeps; the thread does the reverse.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.signals.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        // Full means that a wake-up is under way already.
        let _ = self.wake.write(1);
    }

    pub(crate) fn set_asleep(&self, asleep: bool) {
        self.signals.asleep.store(asleep, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    /// Takes note of wake-ups, which would end the next sleep at once.
    pub(crate) fn take_wakes(&self) {
        let _ = self.wake.read();
    }

    /// Whether the thread waits to be woken: by a queue, another thread or a deadline.
    pub fn is_asleep(&self) -> bool {
        self.signals.asleep.load(Ordering::Relaxed)
    }

    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Makes the thread end once it has done the work left for it so far.
    pub(crate) fn ask_to_stop_after_mail(self: &Arc<Self>) {
        let face = Arc::clone(self);
        self.post(Box::new(move |_| face.signals.stop.store(true, Ordering::SeqCst)));
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signals.stop.load(Ordering::Relaxed)
    }

    /// What the thread has done since it began.
    pub fn load(&self) -> Load {
        self.work.look()
    }

    #[inline(always)]
    pub(crate) fn work(&self) -> &Work {
        &self.work
    }

    /// Notes that the thread has not moved for `still`, since it had done `loops` rounds.
    pub(crate) fn mark_stuck(&self, loops: u64, still: Duration) {
        let mut stall = self.stall.lock().unwrap_or_else(PoisonError::into_inner);
        if stall.is_none_or(|known| known.loops != loops) {
            let now = Instant::now();
            *stall = Some(Stall { loops, since: now.checked_sub(still).unwrap_or(now) });
        }
    }

    /// For how long the thread has been known not to move; `None` when it moves, or sleeps until it is woken. What is
    /// known ends by itself with the thread's next round.
    pub fn stuck_for(&self) -> Option<Duration> {
        let stall = (*self.stall.lock().unwrap_or_else(PoisonError::into_inner))?;
        let is_over = self.load().loops != stall.loops || self.is_asleep();
        if is_over { None } else { Some(stall.since.elapsed()) }
    }

    /// Whether the thread could run if it had a processor, and for how long it has had one, as the kernel says; `None`
    /// where it does not say.
    pub(crate) fn ran(&self) -> Option<(bool, Duration)> {
        let lwp = self.lwp.load(Ordering::Relaxed);
        if lwp == 0 {
            // It has not begun.
            return Some((true, Duration::ZERO));
        }
        let file = |name: &str| std::fs::read_to_string(format!("/proc/self/task/{lwp}/{name}")).ok();
        // The name, the second field, may contain anything, even blanks and brackets.
        let can_run = file("stat")?.rsplit_once(')')?.1.trim_start().starts_with('R');
        let ran = file("schedstat")?.split_whitespace().next()?.parse().ok()?;
        Some((can_run, Duration::from_nanos(ran)))
    }

    /// Part of the time, in percent, that the thread had packets in hand since the counters were cleared.
    pub fn busy_percent(&self) -> f64 {
        let (then, since) = *self.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        let all = crate::clock::tsc().wrapping_sub(since);
        if all == 0 { 0.0 } else { (self.load().since(then).busy as f64 / all as f64 * 100.0).min(100.0) }
    }

    /// Resets the busy percentage.
    pub fn clear_busy(&self) {
        let now = (self.load(), crate::clock::tsc());
        *self.cleared.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Wake for ThreadShared {
    fn wake(&self) {
        ThreadShared::wake(self);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use shoal_infra::PADDING;

    use super::*;

    #[test]
    fn what_different_threads_write_lies_on_different_cache_lines() {
        let (signals, work) = (offset_of!(ThreadShared, signals), offset_of!(ThreadShared, work));
        assert_eq!((signals % PADDING, work % PADDING, align_of::<ThreadShared>() % PADDING), (0, 0, 0));
        assert!(signals.abs_diff(work) >= PADDING);
        assert!(size_of::<Padded<Signals>>().is_multiple_of(PADDING) && size_of::<Padded<Work>>() == PADDING);
    }

    #[test]
    fn work_adds_up_and_clearing_resets_only_the_percentage() {
        let thread = ThreadShared::new(3, "t".into()).unwrap();
        let round = Load { loops: 1, busy: 1 << 40, packets: 7, handed: 2 };
        thread.work().add(round);
        thread.work().add(Load { loops: 1, ..Load::default() });
        assert_eq!(thread.load(), Load { loops: 2, ..round });
        assert!(thread.busy_percent() > 99.0);
        thread.clear_busy();
        assert!(thread.busy_percent() < 1.0);
        assert_eq!(thread.load().since(round), Load { loops: 1, ..Load::default() });
    }
}
