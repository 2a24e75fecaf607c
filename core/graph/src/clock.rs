//! Time as the router sees it: real, or moved by a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The clock of one router. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real { start: Instant, wall: SystemTime, adjust: Arc<AtomicU64> },
    Virtual { now: Arc<AtomicU64> },
}

/// Nanoseconds since the router started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// Seconds since the router started.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long ago `earlier` was, zero if it is in the future.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment this much later.
    pub fn after(self, wait: Duration) -> Time {
        Time(self.0.saturating_add(wait.as_nanos().min(u128::from(u64::MAX)) as u64))
    }
}

impl Clock {
    /// The machine's monotonic clock, from now on.
    pub fn real() -> Self {
        let adjust = Arc::new(AtomicU64::new(0));
        Clock(Kind::Real { start: Instant::now(), wall: SystemTime::now(), adjust })
    }

    /// A clock that stands still until [`Clock::advance`].
    pub fn manual() -> Self {
        Clock(Kind::Virtual { now: Arc::new(AtomicU64::new(0)) })
    }

    /// Time since the router started.
    pub fn now(&self) -> Time {
        match &self.0 {
            Kind::Real { start, adjust, .. } => {
                Time(start.elapsed().as_nanos() as u64 + adjust.load(Ordering::Relaxed))
            }
            Kind::Virtual { now } => Time(now.load(Ordering::Relaxed)),
        }
    }

    /// Moves the clock forward (`set clock adjust`; the only way a manual clock moves).
    pub fn advance(&self, by: Duration) {
        let by = by.as_nanos() as u64;
        match &self.0 {
            Kind::Real { adjust, .. } => adjust.fetch_add(by, Ordering::Relaxed),
            Kind::Virtual { now } => now.fetch_add(by, Ordering::Relaxed),
        };
    }

    /// Whether time passes by itself.
    pub fn is_real(&self) -> bool {
        matches!(self.0, Kind::Real { .. })
    }

    /// The wall-clock time of a moment of this clock.
    pub fn wall(&self, at: Time) -> SystemTime {
        match &self.0 {
            Kind::Real { wall, .. } => *wall + Duration::from_nanos(at.0),
            Kind::Virtual { .. } => SystemTime::UNIX_EPOCH + Duration::from_nanos(at.0),
        }
    }
}

/// The processor's time-stamp counter: what `show runtime` calls clocks.
#[inline(always)]
pub fn tsc() -> u64 {
    crate::raw::tsc()
}

/// Time-stamp counter ticks in a second, measured once.
pub fn tsc_hz() -> f64 {
    static HZ: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *HZ.get_or_init(|| {
        let (t0, c0) = (Instant::now(), tsc());
        std::thread::sleep(Duration::from_millis(20));
        let (dt, dc) = (t0.elapsed(), tsc() - c0);
        // Rounded to a megahertz: the counter's true rate is one, and the measurement is not better.
        ((dc as f64 / dt.as_secs_f64()) / 1e6).round() * 1e6
    })
}
