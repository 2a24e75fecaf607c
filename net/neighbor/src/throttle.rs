//! How often something happened lately, per thread and without locks: so that a thousand packets to one silent
//! neighbour make one request.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shoal_graph::MAX_THREADS;
use shoal_graph::clock::Time;

/// Slots of a thread; also the most keys that pass as "first" in one interval.
const SLOTS: usize = 1024;
/// Bits of a slot that count, below those that say for which interval.
const COUNT_BITS: u32 = 8;
const MOST: u32 = (1 << COUNT_BITS) - 1;

/// Counts per key and interval, approximately: keys that share a slot are counted together. Where a key lies
/// changes with every interval, so two keys do not stand in each other's way for long.
pub struct Throttle {
    threads: Vec<Box<[AtomicU32]>>,
    interval: Duration,
}

impl Throttle {
    /// Nothing has happened yet.
    pub fn new(interval: Duration) -> Self {
        let slots = |_| (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Throttle { threads: (0..MAX_THREADS).map(slots).collect(), interval }
    }

    /// One more of `key` on this thread: how many there were before it in this interval. A count stops at 255.
    pub fn hit(&self, thread: usize, key: u64, now: Time) -> u32 {
        let interval = self.interval.as_nanos().max(1) as u64;
        // Never 0, which is what a slot never used holds.
        let epoch = (now.0 / interval + 1) & u64::from(u32::MAX >> COUNT_BITS);
        let mixed = (key ^ epoch.wrapping_mul(0xff51_afd7_ed55_8ccd)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (mixed >> (u64::BITS - SLOTS.ilog2())) as usize;
        let Some(slot) = self.threads.get(thread).and_then(|t| t.get(at)) else { return MOST };
        let old = slot.load(Ordering::Relaxed);
        let count = if old >> COUNT_BITS == epoch as u32 { old & MOST } else { 0 };
        // Only this thread writes its slots, so load and store suffice.
        slot.store((epoch as u32) << COUNT_BITS | (count + 1).min(MOST), Ordering::Relaxed);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time(milliseconds * 1_000_000)
    }

    #[test]
    fn counts_a_key_within_its_interval() {
        let throttle = Throttle::new(Duration::from_millis(100));
        assert_eq!((0..3).map(|_| throttle.hit(0, 7, at(5))).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(throttle.hit(1, 7, at(5)), 0, "another thread counts for itself");
        assert_eq!(throttle.hit(0, 7, at(100)), 0, "the next interval starts from zero");
        for _ in 0..300 {
            throttle.hit(0, 7, at(100));
        }
        assert_eq!(throttle.hit(0, 7, at(199)), MOST);
    }

    #[test]
    fn a_scan_passes_no_more_keys_than_there_are_slots() {
        let throttle = Throttle::new(Duration::from_millis(100));
        let passed = (0..100_000).filter(|key| throttle.hit(0, *key, at(0)) == 0).count();
        assert!(passed <= SLOTS && passed > SLOTS / 2, "{passed}");
    }

    #[test]
    fn two_keys_do_not_share_a_slot_for_ever() {
        let throttle = Throttle::new(Duration::from_millis(1));
        let alone = (0..1000).filter(|t| {
            throttle.hit(0, 1, at(*t));
            throttle.hit(0, 2, at(*t)) == 0
        });
        assert!(alone.count() > 950);
    }

    #[test]
    fn an_unknown_thread_is_always_throttled() {
        assert_eq!(Throttle::new(Duration::from_secs(1)).hit(MAX_THREADS, 1, at(0)), MOST);
    }
}
