//! How well the tester itself kept up: how late frames were sent, how long it did not look for those that came.

use std::time::Duration;

use hdrhistogram::Histogram;
use shoal_lab_plan::{Lateness, Stall};

use crate::meter::histogram;

/// A pass of the loop that takes longer is a stall.
pub(crate) const STALL: u64 = 50_000;
/// Stalls that are told one by one: the longest.
const TOLD: usize = 100;

/// What is kept of the loop's own time.
#[derive(Debug)]
pub(crate) struct LoopTimes {
    lateness: Histogram<u64>,
    latest: u64,
    most_burst: u32,
    waits: Histogram<u64>,
    calls: Histogram<u64>,
    stalls: Vec<Stall>,
    count: u64,
    longest: u64,
}

impl LoopTimes {
    pub(crate) fn new() -> LoopTimes {
        LoopTimes {
            lateness: histogram(),
            latest: 0,
            most_burst: 0,
            waits: histogram(),
            calls: histogram(),
            stalls: Vec::with_capacity(TOLD),
            count: 0,
            longest: 0,
        }
    }

    /// A frame was taken by the port so many nanoseconds after it was due.
    #[inline]
    pub(crate) fn late(&mut self, by: u64) {
        self.latest = self.latest.max(by);
        self.lateness.saturating_record(by);
    }

    /// So many frames were sent at once.
    #[inline]
    pub(crate) fn burst(&mut self, frames: u32) {
        self.most_burst = self.most_burst.max(frames);
    }

    /// From `at`, since the start, the tester did not look for `length` nanoseconds.
    #[inline]
    pub(crate) fn pass(&mut self, at: u64, length: u64) {
        self.longest = self.longest.max(length);
        if length > STALL {
            self.stall(at, length);
        }
    }

    /// Frames were found that may have lain there for `length` nanoseconds.
    #[inline]
    pub(crate) fn found(&mut self, length: u64) {
        self.waits.saturating_record(length);
    }

    /// A port took `length` nanoseconds to take frames; they may have gone out at any moment of it.
    #[inline]
    pub(crate) fn call(&mut self, length: u64) {
        self.calls.saturating_record(length);
    }

    #[cold]
    fn stall(&mut self, at: u64, length: u64) {
        self.count += 1;
        let stall = Stall { at: Duration::from_nanos(at), length: Duration::from_nanos(length) };
        if self.stalls.len() < TOLD {
            self.stalls.push(stall);
        } else if let Some(shortest) = self.stalls.iter_mut().min_by_key(|s| s.length)
            && shortest.length < stall.length
        {
            *shortest = stall;
        }
    }

    pub(crate) fn lateness(&self) -> Lateness {
        let p999 = self.lateness.value_at_quantile(0.999).min(self.latest);
        Lateness {
            max: Duration::from_nanos(self.latest),
            p999: Duration::from_nanos(p999),
            most_burst: self.most_burst,
        }
    }

    /// How far a delay may be wrong, in nanoseconds: the 99th percentiles of the time for which frames that were found may have
    /// lain, and of the time that a port took to take frames. Looks that found nothing say nothing about a frame.
    pub(crate) fn uncertainty(&self) -> u64 {
        let p99 =
            |of: &Histogram<u64>| if of.is_empty() { 0 } else { of.value_at_quantile(0.99).min(of.max()) };
        p99(&self.waits) + p99(&self.calls)
    }

    /// The longest stalls in order of time, how many there were, and the longest pass.
    pub(crate) fn stalls(&self) -> (Vec<Stall>, u64, Duration) {
        let mut stalls = self.stalls.clone();
        stalls.sort_by_key(|stall| stall.at);
        (stalls, self.count, Duration::from_nanos(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_hundred_stalls_are_told_and_all_are_counted() {
        let mut looks = LoopTimes::new();
        looks.pass(0, STALL);
        (1..=250).for_each(|n| looks.pass(n, STALL + n));
        let (stalls, count, longest) = looks.stalls();
        assert_eq!((stalls.len(), count), (100, 250));
        assert_eq!(longest, Duration::from_nanos(STALL + 250));
        assert!(stalls.iter().all(|s| s.length > Duration::from_nanos(STALL + 150)));
        assert!(stalls.windows(2).all(|w| w[0].at < w[1].at));
    }

    #[test]
    fn lateness_has_its_most_and_its_percentile() {
        let mut looks = LoopTimes::new();
        (0..1000).for_each(|n| looks.late(if n < 999 { 100 } else { 70_000 }));
        looks.burst(3);
        looks.burst(2);
        let Lateness { max, p999, most_burst } = looks.lateness();
        assert_eq!((max, p999, most_burst), (Duration::from_micros(70), Duration::from_nanos(100), 3));
    }
}
