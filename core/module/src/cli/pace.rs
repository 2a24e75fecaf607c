//! Long work on the control thread gives way to others.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long work goes on without a pause. The main thread has other tasks, and without workers it forwards packets, too.
const SLICE: Duration = Duration::from_micros(250);

/// Gives way whenever a slice of time is used up.
///
/// ```
/// # use shoal_module::cli::Pace;
/// # async fn work(pieces: &[u32]) {
/// let pace = Pace::default();
/// for piece in pieces {
///     // ... some ten microseconds of work, and then:
///     pace.give_way().await;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Pace {
    /// `None`: never.
    since: Cell<Option<Instant>>,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { since: Cell::new(Some(Instant::now())) }
    }
}

impl Pace {
    /// For callers that cannot wait: it never gives way.
    pub fn hurried() -> Self {
        Pace { since: Cell::new(None) }
    }

    /// Lets other tasks run now: a slice of time was used up.
    pub async fn pause(&self) {
        if self.since.get().is_some() {
            yield_now().await;
            self.since.set(Some(Instant::now()));
        }
    }

    /// Lets other tasks run, if it is time.
    pub async fn give_way(&self) {
        if self.since.get().is_some_and(|since| since.elapsed() >= SLICE) {
            yield_now().await;
            self.since.set(Some(Instant::now()));
        }
    }
}

/// Lets other tasks run.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
