//! Signals, and an end that no thread can hold up.
//!
//! A thread of its own takes the signals. It passes them on to the main thread, which ends the router in an orderly
//! way. What has not ended [`LIMIT`] later, because some thread does not answer, is ended without it: files are removed
//! as far as that can be done, one line names the thread, and the process leaves. The thread takes no lock that another
//! may hold while it is stuck, and calls nothing that waits.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_io::Async;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use shoal_graph::stall::ThreadList;

/// How long an orderly end may take. With [`LAST_WORDS`] less than two seconds.
const LIMIT: Duration = Duration::from_millis(1500);
/// How long it may take to remove files and to say which thread does not end.
const LAST_WORDS: Duration = Duration::from_millis(250);

const OURS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// The main thread runs the router.
const RUNS: u8 = 0;
/// It ends the router.
const ENDS: u8 = 1;
/// It has ended it; what remains is to give memory back.
const ENDED: u8 = 2;

fn ours() -> SigSet {
    OURS.into_iter().collect()
}

/// Keeps the signals from interrupting the calling thread and those it starts.
pub fn block() -> io::Result<()> {
    Ok(ours().thread_block()?)
}

/// What the main thread and the one of the signals tell each other.
struct Shared {
    /// By position in [`OURS`]: those the main thread has not read yet.
    sent: AtomicU8,
    to_main: EventFd,
    to_guard: EventFd,
    /// How far the main thread is.
    stage: AtomicU8,
    /// The main thread has read a signal that was not for the router: it ended a command of the console.
    dismissed: AtomicBool,
    roster: OnceLock<Arc<ThreadList>>,
    /// Files to remove, a directory behind what is in it.
    leavings: Mutex<Vec<PathBuf>>,
}

/// The signals that were sent to the process, as the main thread reads them.
#[derive(Clone)]
pub struct Signals {
    shared: Arc<Shared>,
    wakes: Arc<Async<OwnedFd>>,
}

impl Signals {
    /// From now on; [`block`] must have been called.
    pub fn new() -> io::Result<Self> {
        let fd = SignalFd::with_flags(&ours(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let event = || EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let shared = Arc::new(Shared {
            sent: AtomicU8::new(0),
            to_main: event()?,
            to_guard: event()?,
            stage: AtomicU8::new(RUNS),
            dismissed: AtomicBool::new(false),
            roster: OnceLock::new(),
            leavings: Mutex::default(),
        });
        let wakes = Arc::new(Async::new(shared.to_main.as_fd().try_clone_to_owned()?)?);
        let guarded = Arc::clone(&shared);
        std::thread::Builder::new().name("signals".into()).spawn(move || guarded.guard(&fd))?;
        Ok(Signals { shared, wakes })
    }

    /// Waits for the next one.
    pub async fn next(&self) -> io::Result<Signal> {
        loop {
            for (at, signal) in OURS.into_iter().enumerate() {
                if self.shared.sent.fetch_and(!(1 << at), Ordering::AcqRel) & (1 << at) != 0 {
                    return Ok(signal);
                }
            }
            self.wakes.readable().await?;
            let _ = self.shared.to_main.read();
        }
    }

    /// A signal that would have ended the router did something else.
    pub fn dismiss(&self) {
        self.shared.dismissed.store(true, Ordering::Release);
        self.shared.tell_guard();
    }

    /// The end begins, whatever the reason: it may take no longer than an end by a signal.
    pub fn ends(&self) {
        self.shared.stage.store(ENDS, Ordering::Release);
        self.shared.tell_guard();
    }

    /// All that others can see has ended.
    pub fn ended(&self) {
        self.shared.stage.store(ENDED, Ordering::Release);
    }

    /// Ends the process at once, because a thread does not end.
    pub fn leave(&self) -> ! {
        self.shared.leave()
    }

    /// These threads may turn out not to end.
    pub fn watch(&self, roster: Arc<ThreadList>) {
        // There is one router in a process.
        let _ = self.shared.roster.set(roster);
    }

    /// This file, or empty directory, goes with the router.
    pub fn remove_at_end(&self, path: PathBuf) {
        self.shared.leavings.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}

impl Shared {
    fn tell_guard(&self) {
        // Full means that a wake-up is waiting.
        let _ = self.to_guard.write(1);
    }

    /// The thread of the signals.
    fn guard(&self, signals: &SignalFd) {
        let mut limit = Limit::default();
        loop {
            let timeout = limit.left(Instant::now()).map_or(PollTimeout::NONE, |left| {
                // Rounded up, so that the limit has passed when the wait ends.
                PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
            });
            let mut fds =
                [signals.as_fd(), self.to_guard.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            // An interrupted wait is an early wake-up.
            let _ = poll(&mut fds, timeout);
            let now = Instant::now();
            while let Ok(Some(info)) = signals.read_signal() {
                let signal = Signal::try_from(info.ssi_signo as i32).ok();
                let Some(at) = OURS.iter().position(|s| Some(*s) == signal) else { continue };
                self.sent.fetch_or(1 << at, Ordering::AcqRel);
                let _ = self.to_main.write(1);
                match signal {
                    Some(Signal::SIGTERM) => limit.end(now),
                    Some(Signal::SIGINT) => limit.interrupt(now),
                    _ => {}
                }
            }
            let _ = self.to_guard.read();
            if self.dismissed.swap(false, Ordering::AcqRel) {
                limit.dismiss();
            }
            if self.stage.load(Ordering::Acquire) != RUNS {
                limit.end(now);
            }
            if limit.left(now).is_some_and(|left| left.is_zero()) {
                self.leave();
            }
        }
    }

    /// Ends the process without the threads that do not end.
    fn leave(&self) -> ! {
        let stage = self.stage.load(Ordering::Acquire);
        if stage == ENDED {
            signal_hook::low_level::exit(0);
        }
        let stuck = self.unended(stage);
        let files = match self.leavings.try_lock() {
            Ok(files) => files.clone(),
            Err(_) => Vec::new(),
        };
        let (said, wait) = mpsc::sync_channel(1);
        // On a thread of its own: a file system, a terminal or the log may be what is stuck.
        let words = move || {
            for file in files {
                let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
            }
            eprintln!("shoal: {stuck} does not end, leaving without it");
            tracing::error!("{stuck} does not end, leaving without it");
            let _ = said.send(());
        };
        if std::thread::Builder::new().name("last-words".into()).spawn(words).is_ok() {
            let _ = wait.recv_timeout(LAST_WORDS);
        }
        // Not by exit(3), which runs what others have registered and so may wait for the thread that is stuck.
        signal_hook::low_level::exit(1);
    }

    /// The thread the end waits for.
    fn unended(&self, stage: u8) -> String {
        let threads = self.roster.get().map(|roster| roster.threads()).unwrap_or_default();
        // The main thread waits for workers only while it ends; one that ended before is not on the list any more.
        let workers = threads.iter().filter(|t| stage != RUNS && t.index != 0 && t.stuck_for().is_some());
        match workers.chain(threads.iter().filter(|t| t.index == 0)).next() {
            Some(thread) => format!("thread {} (LWP {})", thread.name, thread.lwp.load(Ordering::Relaxed)),
            None => "the main thread".into(),
        }
    }
}

/// When the process leaves without those that do not end.
#[derive(Default)]
struct Limit {
    at: Option<Instant>,
    /// It stands: nothing can dismiss it any more.
    stands: bool,
}

impl Limit {
    /// The router is to end.
    fn end(&mut self, now: Instant) {
        self.interrupt(now);
        self.stands = true;
    }

    /// The router is to end, unless the signal is for the console.
    fn interrupt(&mut self, now: Instant) {
        self.at.get_or_insert(now + LIMIT);
    }

    /// The signal was for the console.
    fn dismiss(&mut self) {
        if !self.stands {
            self.at = None;
        }
    }

    fn left(&self, now: Instant) -> Option<Duration> {
        self.at.map(|at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interrupt_that_the_console_took_is_dismissed() {
        let now = Instant::now();
        let mut limit = Limit::default();
        assert_eq!(limit.left(now), None);
        limit.interrupt(now);
        assert_eq!(limit.left(now), Some(LIMIT));
        limit.dismiss();
        assert_eq!(limit.left(now), None);
        limit.interrupt(now);
        limit.end(now + LIMIT / 2);
        limit.dismiss();
        assert_eq!(limit.left(now + LIMIT), Some(Duration::ZERO), "counted from the first signal");
        const { assert!(LIMIT.as_millis() + LAST_WORDS.as_millis() < 2000) };
    }
}
