//! How many frames for groups and for unknown stations a port may bring into its domain: written by the control plane, kept
//! by packets.
//!
//! One bucket for each class of a port, shared by all threads, so that a limit is the same number whichever workers a port's
//! queues are on. A bucket is one word, the time at which it is full again. A frame beyond the limit only reads it: a storm
//! costs no thread another's cache line.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_graph::clock::Time;
use shoal_infra::{StableArena, zeroable_struct};
use shoal_interface::{MAX_INTERFACES, SwIfIndex};

/// Units of time in a nanosecond: at a hundred million packets a second their distance is right to a thousandth.
const UNITS: u64 = 1 << 10;
/// What a bucket holds: one second's frames.
const SECOND: u64 = 1_000_000_000 * UNITS;
/// The distance that no frame keeps.
const NONE_PASSES: u64 = u64::MAX;

/// What is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum StormClass {
    /// Frames for all stations.
    Broadcast,
    /// Frames for a group of stations.
    Multicast,
    /// Frames for one station that is not known.
    UnknownUnicast,
}

impl StormClass {
    /// All.
    pub const ALL: [StormClass; 3] =
        [StormClass::Broadcast, StormClass::Multicast, StormClass::UnknownUnicast];

    /// The word of commands and of traces.
    pub fn word(self) -> &'static str {
        match self {
            StormClass::Broadcast => "broadcast",
            StormClass::Multicast => "multicast",
            StormClass::UnknownUnicast => "unknown-unicast",
        }
    }
}

/// Packets a second of each class; `None`: as many as come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StormLimits([Option<u32>; 3]);

impl StormLimits {
    /// The limit of a class.
    pub fn get(&self, class: StormClass) -> Option<u32> {
        let [broadcast, multicast, unknown] = self.0;
        match class {
            StormClass::Broadcast => broadcast,
            StormClass::Multicast => multicast,
            StormClass::UnknownUnicast => unknown,
        }
    }

    /// The same with another limit of a class.
    #[must_use]
    pub fn with(self, class: StormClass, limit: Option<u32>) -> Self {
        let of = |other| if other == class { limit } else { self.get(other) };
        StormLimits(StormClass::ALL.map(of))
    }

    /// Whether nothing is limited.
    pub fn is_off(&self) -> bool {
        *self == StormLimits::default()
    }
}

zeroable_struct! {
    /// All zero: nothing is limited.
    #[repr(C, align(64))]
    struct PortBuckets {
        /// From one frame to the next; 0: no limit.
        distance: [AtomicU64; 3],
        /// When the bucket is full again.
        full: [AtomicU64; 3],
    }
}

/// The buckets of all ports. Clones are the same.
#[derive(Clone)]
pub(crate) struct StormTable(StableArena<PortBuckets>);

impl StormTable {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(StormTable(StableArena::with_capacity(MAX_INTERFACES)?))
    }

    /// Sets the limits of a port. A bucket whose limit changes is full.
    pub(crate) fn set(&self, port: SwIfIndex, limits: StormLimits) {
        let Some(buckets) = self.0.get(port.0 as usize) else { return };
        for (class, (distance, full)) in
            StormClass::ALL.into_iter().zip(buckets.distance.iter().zip(&buckets.full))
        {
            let wanted = match limits.get(class) {
                None => 0,
                Some(0) => NONE_PASSES,
                Some(limit) => SECOND / u64::from(limit),
            };
            if distance.swap(wanted, Ordering::Relaxed) != wanted {
                full.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Whether one more frame of a class may come in; then it is counted.
    #[inline]
    pub(crate) fn takes(&self, port: SwIfIndex, class: StormClass, now: Time) -> bool {
        let Some(buckets) = self.0.get(port.0 as usize) else { return true };
        let at = class as usize;
        let (Some(distance), Some(full)) = (buckets.distance.get(at), buckets.full.get(at)) else {
            return true;
        };
        match distance.load(Ordering::Relaxed) {
            0 => true,
            NONE_PASSES => false,
            distance => take(full, distance, now.0.wrapping_mul(UNITS)),
        }
    }
}

/// Takes a frame's share of a bucket. Times wrap: one that lies further ahead than a bucket holds is long past.
fn take(full: &AtomicU64, distance: u64, now: u64) -> bool {
    let mut seen = full.load(Ordering::Relaxed);
    loop {
        let ahead = match seen.wrapping_sub(now) {
            ahead if ahead <= SECOND => ahead,
            _ => 0,
        };
        if ahead + distance > SECOND {
            return false;
        }
        let next = now.wrapping_add(ahead + distance);
        match full.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(other) => seen = other,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const PORT: SwIfIndex = SwIfIndex(3);

    fn table(limit: u32) -> StormTable {
        let table = StormTable::new().unwrap();
        table.set(PORT, StormLimits::default().with(StormClass::Broadcast, Some(limit)));
        table
    }

    /// A bucket as a book has it, in billionths of a frame.
    struct Model {
        limit: u64,
        frames: u128,
        last: u64,
    }

    const FRAME: u128 = 1_000_000_000;

    impl Model {
        /// `None`: so near to the edge that rounding of a distance decides.
        fn takes(&mut self, now: u64) -> Option<bool> {
            let most = u128::from(self.limit) * FRAME;
            self.frames = most.min(self.frames + u128::from(now - self.last) * u128::from(self.limit));
            self.last = now;
            let rounds = !SECOND.is_multiple_of(self.limit);
            (!rounds || self.frames.abs_diff(FRAME) > FRAME / 200).then_some(self.frames >= FRAME)
        }
    }

    #[test]
    fn a_bucket_is_that_of_the_book_at_any_rate_and_time() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |most: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % most
        };
        for limit in [1, 3, 10, 1_000, 77_777, 1_000_000] {
            let table = table(limit);
            let (limit, mut now, mut undecided) = (u64::from(limit), next(1 << 60), 0);
            let mut model = Model { limit, frames: u128::from(limit) * FRAME, last: now };
            for _ in 0..20_000 {
                let pause = if next(50) == 0 { 3_000_000_000 } else { 1_900_000_000 / limit };
                now += next(pause.max(2));
                let takes = table.takes(PORT, StormClass::Broadcast, Time(now));
                match model.takes(now) {
                    Some(expected) => assert_eq!(takes, expected, "limit {limit}, {now}"),
                    None => undecided += 1,
                }
                model.frames = model.frames.saturating_sub(if takes { FRAME } else { 0 });
            }
            assert!(undecided < 2_000, "the model decides mostly: {undecided} at {limit}");
        }
    }

    #[test]
    fn no_second_lets_more_pass_than_a_full_bucket_and_the_limit() {
        let table = table(500);
        let start = 1_u64 << 40;
        let passed = (0..200_000_u64)
            .filter(|n| table.takes(PORT, StormClass::Broadcast, Time(start + n * 10_000)))
            .count();
        assert_eq!(passed, 500 + 2 * 500 - 1, "one bucket and not quite two seconds");
    }

    #[test]
    fn threads_share_a_bucket() {
        let (table, passed) = (table(1_000), Arc::new(AtomicUsize::new(0)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        let takes = table.takes(PORT, StormClass::Broadcast, Time(77));
                        passed.fetch_add(usize::from(takes), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 1_000);
    }

    #[test]
    fn a_limit_of_nothing_lets_nothing_pass_and_no_limit_all() {
        let table = table(0);
        assert!(!table.takes(PORT, StormClass::Broadcast, Time(u64::MAX)));
        assert!(table.takes(PORT, StormClass::Multicast, Time(5)));
        assert!(table.takes(SwIfIndex::NONE, StormClass::Broadcast, Time(5)));
        table.set(PORT, StormLimits::default());
        assert!(table.takes(PORT, StormClass::Broadcast, Time(5)));
    }
}
