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

    /// A number that changes when the clock is moved.
    fn moved(&self) -> u64 {
        match &self.0 {
            Kind::Real { adjust: by, .. } | Kind::Virtual { now: by } => by.load(Ordering::Relaxed),
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

/// One thread's look at a clock, many times in a millisecond: the machine's clock is read now and then, and the
/// time-stamp counter, which the thread has read anyhow, tells how much time has passed since.
#[derive(Debug)]
pub(crate) struct Watch {
    clock: Clock,
    /// What was read, when by the counter, and [`Clock::moved`] then.
    read: Option<(Time, u64, u64)>,
    latest: Time,
    /// The first reading since the thread slept or the clock was moved: the counter's rate is learnt from it on.
    first: Option<(Time, u64)>,
    /// Nanoseconds per tick of the counter, times 2^32.
    scale: u64,
    /// Ticks for which a reading does; none as long as the rate is not known.
    lasts: u64,
}

/// How long one reading of the machine's clock does, and so how far a watch can ever be off: when the thread was
/// interrupted between clock and counter, or the counter's rate was learnt badly.
const READING_LASTS: Duration = Duration::from_micros(50);

/// How far two readings lie apart that tell the counter's rate.
const RATE_TAKES: Duration = Duration::from_millis(1);

impl Watch {
    pub(crate) fn new(clock: Clock) -> Self {
        // A manual clock stands still until it is moved.
        let lasts = if clock.is_real() { 0 } else { u64::MAX };
        Watch { clock, read: None, latest: Time::default(), first: None, scale: 0, lasts }
    }

    /// The time, read from the clock.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The time at which the counter stood at `tsc`, a moment ago; never before what was told last, unless the clock
    /// was moved.
    #[inline(always)]
    pub(crate) fn time_at(&mut self, tsc: u64) -> Time {
        let moved = self.clock.moved();
        if let Some((time, at, then)) = self.read
            && moved == then
        {
            let ticks = tsc.wrapping_sub(at);
            if ticks < self.lasts {
                let passed = ticks.wrapping_mul(self.scale) >> 32;
                self.latest = self.latest.max(Time(time.0.saturating_add(passed)));
                return self.latest;
            }
        }
        self.read(moved)
    }

    #[cold]
    #[inline(never)]
    fn read(&mut self, moved: u64) -> Time {
        // The counter as it stands now: the thread may have been interrupted since its last reading.
        let (time, tsc) = (self.clock.now(), tsc());
        if self.read.is_some_and(|(_, _, then)| then != moved) {
            self.first = None;
            self.latest = time;
        }
        self.latest = self.latest.max(time);
        self.read = Some((time, tsc, moved));
        if self.clock.is_real() {
            self.learn(time, tsc);
        }
        self.latest
    }

    /// What a reading says of the counter's rate; the longer the thread has been awake, the better.
    fn learn(&mut self, time: Time, tsc: u64) {
        let (earlier, at) = *self.first.get_or_insert((time, tsc));
        let (passed, ticks) = (time.since(earlier), tsc.wrapping_sub(at));
        if passed >= RATE_TAKES && ticks > 0 {
            let passed = passed.as_nanos();
            self.scale = ((passed << 32) / u128::from(ticks)) as u64;
            self.lasts = (u128::from(ticks) * READING_LASTS.as_nanos() / passed) as u64;
        }
    }

    /// The thread has slept, and the counter perhaps too.
    pub(crate) fn forget(&mut self) {
        (self.read, self.first) = (None, None);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_with_its_clock_and_never_back() {
        let clock = Clock::real();
        let mut watch = Watch::new(clock.clone());
        let mut last = Time::default();
        let end = Instant::now() + Duration::from_millis(5);
        while Instant::now() < end {
            let (before, time) = (clock.now(), watch.time_at(tsc()));
            assert!(time >= last);
            assert!(time.after(READING_LASTS) >= before, "{time:?} {before:?}");
            assert!(time <= clock.now().after(READING_LASTS));
            last = time;
        }
        clock.advance(Duration::from_secs(10));
        // Its last reading may have been ahead by what a reading is good for.
        let moved = watch.time_at(tsc()).since(last);
        assert!(moved + READING_LASTS >= Duration::from_secs(10), "a move shows at once: {moved:?}");
    }

    #[test]
    fn a_manual_clock_stands_still_on_the_watch_too() {
        let clock = Clock::manual();
        let mut watch = Watch::new(clock.clone());
        assert_eq!((watch.time_at(1), watch.time_at(u64::MAX / 2)), (Time(0), Time(0)));
        clock.advance(Duration::from_nanos(7));
        assert_eq!(watch.time_at(2), Time(7));
        watch.forget();
        assert_eq!(watch.time_at(3), Time(7));
    }
}
