//! A token bucket for all threads together: how many ICMP errors the router sends (RFC 1812 section 4.3.2.8).
//!
//! One atomic word, the time at which the bucket would be full again if nothing more were taken. It is touched
//! only by packets that are about to be answered with an error, which is the rare case by definition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use shoal_graph::clock::Time;
use shoal_graph::counter::Simple;

/// How many errors may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Rate {
    /// In a second, on average; 0: as many as there are.
    pub per_second: u32,
    /// At once, after a quiet time.
    pub burst: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Rate { per_second: 100, burst: 100 }
    }
}

/// The bucket.
pub struct Limiter {
    full_again: AtomicU64,
    /// Nanoseconds per token, 0 for no limit.
    interval: AtomicU64,
    burst: AtomicU64,
}

/// How often a lost race for a token is run again before the packet counts as one too many.
const RACES: usize = 16;

impl Limiter {
    /// A full bucket.
    pub fn new(rate: Rate) -> Self {
        let limiter =
            Limiter { full_again: AtomicU64::new(0), interval: AtomicU64::new(0), burst: AtomicU64::new(1) };
        limiter.set(rate);
        limiter
    }

    /// Changes the rate. A burst of 0 would stop everything and counts as 1.
    pub fn set(&self, rate: Rate) {
        let second = Duration::from_secs(1).as_nanos() as u64;
        self.interval.store(second.checked_div(rate.per_second.into()).unwrap_or(0), Ordering::Relaxed);
        self.burst.store(rate.burst.max(1).into(), Ordering::Relaxed);
    }

    /// Takes a token, if there is one.
    pub fn take(&self, now: Time) -> bool {
        let interval = self.interval.load(Ordering::Relaxed);
        if interval == 0 {
            return true;
        }
        let most = self.burst.load(Ordering::Relaxed).saturating_mul(interval);
        for _ in 0..RACES {
            let old = self.full_again.load(Ordering::Relaxed);
            let new = old.max(now.0).saturating_add(interval);
            if new - now.0 > most {
                return false;
            }
            let won = self.full_again.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed);
            if won.is_ok() {
                return true;
            }
        }
        false
    }
}

/// What one family may say: its bucket, and what it has sent by type. Clones are the same.
#[derive(Clone)]
pub struct Allowance {
    limiter: Arc<Limiter>,
    tx: Simple,
}

impl Allowance {
    pub(crate) fn new(rate: Rate, tx: Simple) -> Self {
        Allowance { limiter: Arc::new(Limiter::new(rate)), tx }
    }

    /// Whether one more error or redirect may be sent.
    pub fn take(&self, now: Time) -> bool {
        self.limiter.take(now)
    }

    /// Counts a message that is sent.
    pub fn count(&self, kind: u8, thread: usize) {
        self.tx.add(thread, kind.into(), 1);
    }

    pub(crate) fn set(&self, rate: Rate) {
        self.limiter.set(rate);
    }

    pub(crate) fn sent(&self, kind: u8) -> u64 {
        self.tx.sum(kind.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(limiter: &Limiter, tries: usize, milliseconds: u64) -> usize {
        (0..tries).filter(|_| limiter.take(Time(milliseconds * 1_000_000))).count()
    }

    #[test]
    fn allows_a_burst_then_the_rate() {
        let limiter = Limiter::new(Rate { per_second: 100, burst: 20 });
        assert_eq!(taken(&limiter, 1000, 0), 20);
        assert_eq!(taken(&limiter, 1000, 9), 0);
        assert_eq!(taken(&limiter, 1000, 100), 10);
        assert_eq!(taken(&limiter, 1000, 60_000), 20, "a quiet minute fills the bucket, not more");
    }

    #[test]
    fn a_rate_of_zero_is_no_limit() {
        let limiter = Limiter::new(Rate { per_second: 0, burst: 1 });
        assert_eq!(taken(&limiter, 100_000, 0), 100_000);
    }

    #[test]
    fn a_burst_of_zero_lets_single_errors_through() {
        let limiter = Limiter::new(Rate { per_second: 1000, burst: 0 });
        assert_eq!((taken(&limiter, 10, 0), taken(&limiter, 10, 1)), (1, 1));
    }

    #[test]
    fn threads_together_get_no_more_than_one_bucket() {
        let limiter = Limiter::new(Rate { per_second: 1, burst: 500 });
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| taken(&limiter, 1000, 0))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert!(taken <= 500 && taken > 400, "{taken}");
    }
}
