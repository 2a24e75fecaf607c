//! What time it is: the processor's counter, checked against the kernel, or a time that a test moves.
//!
//! A trial reads its clock several times for each burst, so a real clock must cost nanoseconds. The time-stamp counter
//! does, but only where the processor promises that it ticks evenly; how fast is measured against
//! `CLOCK_MONOTONIC_RAW`, which no time daemon slews, before the first trial and again after each.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;

/// How long the first calibration takes, and the least time that a check spans.
const CALIBRATION: Duration = Duration::from_secs(1);
/// Most that two calibrations may differ: 50 ppm.
const MOST_DRIFT_PPM: f64 = 50.0;
/// Readings of both clocks of which the closest pair is taken.
const READINGS: u32 = 64;
/// Binary digits after the point of nanoseconds a tick.
const SHIFT: u32 = 32;

/// Time for one engine and its synthetic device. Clones show the same time.
pub trait Clock: Clone {
    /// Nanoseconds since some moment before the clock was made; never less than before.
    fn now(&self) -> u64;

    /// Nothing is to be done before `moment`. A simulated clock goes there; a real one lets the caller look again, because
    /// frames may come at any time. Returns how far it went, in nanoseconds.
    fn idle_until(&self, moment: u64) -> u64;

    /// Whether the time that passes is real, so that other programs may have used it.
    fn is_real(&self) -> bool;

    /// Compares the clock with the kernel's since `since`.
    ///
    /// # Errors
    ///
    /// They run apart, so nothing that was measured can be believed.
    fn check(&self, since: &Reading) -> Result<ClockCheck, ClockError>;

    /// Both clocks now, for a later [`check`](Self::check).
    fn read(&self) -> Reading;
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The processor's counter, in ticks.
    ticks: u64,
    /// The kernel's raw clock, in nanoseconds.
    raw: u64,
}

/// How well the clock was found to run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockCheck {
    /// Nanoseconds it was watched for.
    pub span: u64,
    /// Parts in a million by which it ran fast.
    pub ppm: f64,
    /// Ticks a second.
    pub hertz: f64,
}

/// A clock that cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ClockError {
    /// Two calibrations differ.
    #[error(
        "the counter ran {ppm:.1} ppm off its calibration over {seconds:.3} s, at most 50 ppm are bearable"
    )]
    Drift {
        /// Parts in a million.
        ppm: f64,
        /// Of how many seconds.
        seconds: f64,
    },
}

/// Where ticks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The time-stamp counter.
    Counter,
    /// `clock_gettime`, where the counter cannot be trusted: a tick is a nanosecond.
    Kernel,
}

/// The machine's clock.
#[derive(Clone, Debug)]
pub struct MachineClock {
    source: Source,
    /// Nanoseconds a tick, times 2^32.
    multiplier: u64,
    first: Reading,
}

impl MachineClock {
    /// Takes a second to find out how fast the counter ticks, once for a campaign.
    pub fn calibrated() -> Self {
        let source = if counter_is_even() { Source::Counter } else { Source::Kernel };
        let first = read(source);
        if source == Source::Kernel {
            return MachineClock { source, multiplier: 1 << SHIFT, first };
        }
        while raw_nanoseconds().saturating_sub(first.raw) < CALIBRATION.as_nanos() as u64 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let last = read(source);
        let ticks = last.ticks.saturating_sub(first.ticks).max(1);
        let nanoseconds = u128::from(last.raw.saturating_sub(first.raw));
        let multiplier = u64::try_from((nanoseconds << SHIFT) / u128::from(ticks)).unwrap_or(u64::MAX);
        MachineClock { source, multiplier: multiplier.max(1), first }
    }

    /// What ticks: `tsc` or `clock_gettime`.
    pub fn source(&self) -> &'static str {
        match self.source {
            Source::Counter => "tsc",
            Source::Kernel => "clock_gettime",
        }
    }

    fn hertz(&self) -> f64 {
        1e9 * (1u64 << SHIFT) as f64 / self.multiplier as f64
    }
}

impl Clock for MachineClock {
    #[inline]
    fn now(&self) -> u64 {
        let ticks = match self.source {
            Source::Counter => shoal_graph::clock::tsc(),
            Source::Kernel => raw_nanoseconds(),
        };
        let since = ticks.saturating_sub(self.first.ticks);
        ((u128::from(since) * u128::from(self.multiplier)) >> SHIFT) as u64
    }

    #[inline]
    fn idle_until(&self, _: u64) -> u64 {
        0
    }

    fn is_real(&self) -> bool {
        true
    }

    fn check(&self, since: &Reading) -> Result<ClockCheck, ClockError> {
        let now = read(self.source);
        // Over less than a second the reading of two clocks one after the other would be most of the difference.
        let long = now.raw.saturating_sub(since.raw) >= CALIBRATION.as_nanos() as u64;
        let from = if long { *since } else { self.first };
        let span = now.raw.saturating_sub(from.raw);
        let ticks = now.ticks.saturating_sub(from.ticks);
        let told = ((u128::from(ticks) * u128::from(self.multiplier)) >> SHIFT) as f64;
        let ppm = if span == 0 { 0.0 } else { (told / span as f64 - 1.0) * 1e6 };
        if ppm.abs() > MOST_DRIFT_PPM && span >= CALIBRATION.as_nanos() as u64 {
            return Err(ClockError::Drift { ppm, seconds: span as f64 / 1e9 });
        }
        Ok(ClockCheck { span, ppm, hertz: self.hertz() })
    }

    fn read(&self) -> Reading {
        read(self.source)
    }
}

/// The two clocks, as close together as the best of some readings comes.
fn read(source: Source) -> Reading {
    let ticks = || match source {
        Source::Counter => shoal_graph::clock::tsc(),
        Source::Kernel => raw_nanoseconds(),
    };
    let reading = || {
        let before = ticks();
        let raw = raw_nanoseconds();
        let after = ticks();
        (after.saturating_sub(before), Reading { ticks: before + after.saturating_sub(before) / 2, raw })
    };
    let best = (0..READINGS).map(|_| reading()).min_by_key(|(width, _)| *width);
    best.map(|(_, reading)| reading).unwrap_or_default()
}

fn raw_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the processor says that its counter ticks at one speed and never stops.
fn counter_is_even() -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") else { return false };
    flags_say_even(&text)
}

fn flags_say_even(cpuinfo: &str) -> bool {
    let mut lines = cpuinfo.lines().filter(|line| line.starts_with("flags")).peekable();
    let has = |line: &str, flag: &str| line.split_whitespace().any(|word| word == flag);
    cfg!(target_arch = "x86_64")
        && lines.peek().is_some()
        && lines.all(|line| has(line, "constant_tsc") && has(line, "nonstop_tsc"))
}

/// A clock that stands still while the engine works and moves when it waits, so that a trial of minutes takes as long as
/// its frames take to be handled, and gives the same result each time.
#[derive(Clone, Debug, Default)]
pub struct SimulatedClock(Rc<Cell<u64>>);

impl SimulatedClock {
    /// At 0.
    pub fn new() -> Self {
        SimulatedClock::default()
    }

    /// Moves it by `nanoseconds`, as if the engine had been held up.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.set(self.0.get().saturating_add(nanoseconds));
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn idle_until(&self, moment: u64) -> u64 {
        let by = moment.saturating_sub(self.0.get());
        self.advance(by);
        by
    }

    fn is_real(&self) -> bool {
        false
    }

    fn check(&self, _: &Reading) -> Result<ClockCheck, ClockError> {
        Ok(ClockCheck { span: self.now(), ppm: 0.0, hertz: 1e9 })
    }

    fn read(&self) -> Reading {
        Reading { ticks: self.now(), raw: self.now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_clock_agrees_with_the_kernels() {
        let clock = MachineClock::calibrated();
        let begun = clock.read();
        let check = clock.check(&begun).unwrap();
        assert!(check.span >= 1_000_000_000, "{check:?}");
        assert!(check.ppm.abs() <= 50.0, "{check:?}");
        let (a, b) = (clock.now(), clock.now());
        assert!(b >= a);
    }

    #[test]
    fn a_counter_that_runs_off_is_found_out() {
        let mut clock = MachineClock::calibrated();
        clock.multiplier += clock.multiplier / 10_000;
        let found = clock.check(&clock.read()).unwrap_err();
        let ClockError::Drift { ppm, .. } = found;
        assert!((50.0..200.0).contains(&ppm), "{ppm}");
    }

    #[test]
    fn a_counter_is_used_only_if_each_processor_promises_that_it_is_even() {
        assert!(flags_say_even(
            "flags\t\t: fpu constant_tsc nonstop_tsc\nflags : constant_tsc nonstop_tsc sse\n"
        ));
        assert!(!flags_say_even("flags : constant_tsc nonstop_tsc\nflags : constant_tsc\n"));
        assert!(!flags_say_even("flags : constant_tsc_not nonstop_tsc\n"));
        assert!(!flags_say_even(""));
    }

    #[test]
    fn a_simulated_clock_moves_only_when_somebody_waits() {
        let clock = SimulatedClock::new();
        let seen = clock.clone();
        assert_eq!((clock.now(), clock.now()), (0, 0));
        assert_eq!(clock.idle_until(500), 500);
        assert_eq!(clock.idle_until(400), 0);
        assert_eq!(seen.now(), 500);
    }
}
