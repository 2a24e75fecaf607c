//! Races against a thread that must never stand still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longer than a loaded machine keeps a thread from running.
const STILL: Duration = Duration::from_secs(10);

/// However slow the machine is.
const LONGEST: Duration = Duration::from_mins(5);

/// How long a race is run: 3 s, or with `SHOAL_LONG` in the environment as long as the test says.
pub fn race_time(long: Duration) -> Duration {
    if std::env::var_os("SHOAL_LONG").is_some() { long } else { Duration::from_secs(3).min(long) }
}

/// Returns after `time`, and not before `enough`, if `count`, which another thread moves on, has not stood still for 10 s by
/// then.
///
/// # Panics
/// It has. The thread is stuck and must not be joined. Or there is not enough after five minutes.
pub fn must_go_on(what: &str, count: &AtomicU64, time: Duration, enough: impl Fn() -> bool) {
    let start = Instant::now();
    let (mut seen, mut since) = (count.load(Ordering::Relaxed), start);
    loop {
        std::thread::sleep(Duration::from_millis(10));
        let now = count.load(Ordering::Relaxed);
        if now != seen {
            (seen, since) = (now, Instant::now());
            if start.elapsed() >= time && enough() {
                return;
            }
        }
        assert!(start.elapsed() < LONGEST.max(time), "{what} goes on, and what is waited for does not come");
        assert!(since.elapsed() < STILL, "{what} stands still since {:?}, after {now} rounds", since - start);
    }
}
