//! The values a variable takes, frame by frame, and what becomes of them when frames are repeated or dealt out.

use shoal_lab_plan::{Order, Variable};

/// Values written out, at most: 8 MiB each.
pub(crate) const LONGEST: u64 = 1 << 20;

/// The values of frame 0, 1, 2 and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// `min + i * step` for i from `start`, rising or falling, `count` of them and then again.
    Range { min: u64, step: u64, count: u128, start: u64, falling: bool },
    /// These, and then again.
    List(Vec<u64>),
    /// Any from `min` to `max`, each independent of the last.
    Random { min: u64, max: u64, seed: u64 },
    /// Any of these.
    RandomOf { values: Vec<u64>, seed: u64 },
}

/// How many values would have to be written out, where that is too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong(pub(crate) u64);

impl Sequence {
    /// All values from `first` on that a step leads to between `min` and `max`.
    ///
    /// Only those: with step 3 from 1 between 0 and 10 it is 1, 4, 7, 10 and then 1 again.
    pub(crate) fn range(min: u64, max: u64, first: u64, step: u64, falling: bool) -> Sequence {
        let step = step.max(1);
        let first = first.clamp(min, max.max(min));
        let start = (first - min) / step;
        let lowest = first - start * step;
        let count = u128::from((max.max(min) - lowest) / step) + 1;
        Sequence::Range { min: lowest, step, count, start, falling }
    }

    /// After how many frames it begins again; none for random ones.
    pub(crate) fn period(&self) -> Option<u64> {
        match self {
            Sequence::Range { count, .. } => Some(u64::try_from(*count).unwrap_or(u64::MAX)),
            Sequence::List(values) => Some(values.len() as u64),
            Sequence::Random { .. } | Sequence::RandomOf { .. } => None,
        }
    }

    /// The value in frame `k`; for random ones only when taken one after the other.
    fn values(&self, indices: impl Iterator<Item = u64>) -> Vec<u64> {
        match self {
            Sequence::Range { min, step, count, start, falling } => indices
                .map(|k| {
                    let (k, count) = (u128::from(k), *count);
                    let start = u128::from(*start);
                    let i = if *falling { (start + count - k % count) % count } else { (start + k) % count };
                    min + i as u64 * step
                })
                .collect(),
            Sequence::List(values) => indices
                .filter_map(|k| values.get((k % values.len().max(1) as u64) as usize).copied())
                .collect(),
            Sequence::Random { min, max, seed } => {
                let mut dice = SplitMix(*seed);
                indices.map(|_| dice.between(*min, *max)).collect()
            }
            Sequence::RandomOf { values, seed } => {
                let mut dice = SplitMix(*seed);
                let last = values.len().saturating_sub(1) as u64;
                indices.filter_map(|_| values.get(dice.between(0, last) as usize).copied()).collect()
            }
        }
    }

    /// The first `count` values.
    pub(crate) fn head(&self, count: u64) -> Vec<u64> {
        self.values(0..count.min(LONGEST))
    }

    /// The first `count` frames again and again: TRex's cache.
    pub(crate) fn cached(self, count: u64) -> Result<Sequence, TooLong> {
        if count == 0 || self.period().is_some_and(|period| count.is_multiple_of(period)) {
            return Ok(self);
        }
        if let Sequence::Range { min, step, count: all, start, falling } = self {
            if !falling && u128::from(start) + u128::from(count) <= all {
                let count = count.into();
                return Ok(Sequence::Range { min: min + start * step, step, count, start: 0, falling });
            }
            if falling && start >= count - 1 {
                let min = min + (start - (count - 1)) * step;
                return Ok(Sequence::Range { min, step, count: count.into(), start: count - 1, falling });
            }
        }
        if count > LONGEST {
            return Err(TooLong(count));
        }
        Ok(Sequence::List(self.head(count)))
    }

    /// Each value `times` times before the next: a variable that another one drives.
    pub(crate) fn slowed(self, times: u64) -> Result<Sequence, TooLong> {
        let Some(period) = self.period() else { return Err(TooLong(u64::MAX)) };
        if times == 1 || period == 1 {
            return Ok(self);
        }
        let long = period.saturating_mul(times);
        if long > LONGEST {
            return Err(TooLong(long));
        }
        Ok(Sequence::List(self.values((0..long).map(|k| k / times))))
    }

    /// Frames `first`, `first + every`, `first + 2 * every` and so on.
    pub(crate) fn dealt(self, every: u64, first: u64) -> Result<Sequence, TooLong> {
        let every = every.max(1);
        let Some(period) = self.period() else { return Ok(self.reseeded(first)) };
        if let Sequence::Range { min, step, count, start, falling } = self {
            let (begin, passed, every_wide) = (u128::from(start), u128::from(first), u128::from(every));
            if count.is_multiple_of(every_wide) {
                let at = if falling { begin + count - passed % count } else { begin + passed } % count;
                let (rest, start) = ((at % every_wide) as u64, (at / every_wide) as u64);
                return Ok(Sequence::Range {
                    min: min + rest * step,
                    step: step.saturating_mul(every),
                    count: count / every_wide,
                    start,
                    falling,
                });
            }
        }
        let long = period / greatest_common_divisor(period, every);
        if long > LONGEST {
            return Err(TooLong(long));
        }
        Ok(Sequence::List(self.values((0..long).map(|k| first + k * every))))
    }

    fn reseeded(mut self, by: u64) -> Sequence {
        if let Sequence::Random { seed, .. } | Sequence::RandomOf { seed, .. } = &mut self {
            *seed = mixed(*seed ^ mixed(by + 1));
        }
        self
    }

    /// The variable as the plan has it.
    pub(crate) fn variable(self) -> Variable {
        match self {
            Sequence::Range { min, step, count, start, falling } => Variable {
                order: if falling { Order::Falling } else { Order::Rising },
                min,
                max: min + (count - 1) as u64 * step,
                first: min + start * step,
                step,
                list: Vec::new(),
                seed: 0,
            },
            Sequence::List(list) => listed(list, Order::Rising, 0),
            Sequence::RandomOf { values, seed } => listed(values, Order::Random, seed),
            Sequence::Random { min, max, seed } => {
                Variable { order: Order::Random, min, max, first: min, step: 1, list: Vec::new(), seed }
            }
        }
    }
}

fn listed(list: Vec<u64>, order: Order, seed: u64) -> Variable {
    let min = list.iter().copied().min().unwrap_or(0);
    let max = list.iter().copied().max().unwrap_or(0);
    let first = list.first().copied().unwrap_or(0);
    Variable { order, min, max, first, step: 1, list, seed }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Numbers from a seed, for values that are written out (Steele, Lea, Flood: SplitMix).
struct SplitMix(u64);

/// SplitMix's output function: seeds that differ little become numbers that differ much.
pub(crate) fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl SplitMix {
    fn between(&mut self, min: u64, max: u64) -> u64 {
        let count = u128::from(max - min.min(max)) + 1;
        // What lies above the largest multiple is thrown again, so that all values are equally likely.
        let fair = (1_u128 << 64) / count * count;
        loop {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let thrown = u128::from(mixed(self.0));
            if thrown < fair {
                return min + (thrown % count) as u64;
            }
        }
    }
}

/// A list of random values, the same ones for the same seed.
pub(crate) fn thrown(count: u64, min: u64, max: u64, seed: u64) -> Result<Sequence, TooLong> {
    if count > LONGEST {
        return Err(TooLong(count));
    }
    Ok(Sequence::List(Sequence::Random { min, max, seed }.head(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(sequence: &Sequence, count: u64) -> Vec<u64> {
        sequence.values(0..count)
    }

    #[test]
    fn ranges_go_round_through_the_values_that_a_step_leads_to() {
        assert_eq!(first(&Sequence::range(0, 3, 0, 1, false), 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(first(&Sequence::range(0, 3, 3, 1, true), 6), [3, 2, 1, 0, 3, 2]);
        assert_eq!(first(&Sequence::range(0, 10, 0, 3, false), 6), [0, 3, 6, 9, 0, 3]);
        assert_eq!(first(&Sequence::range(0, 10, 1, 3, false), 6), [1, 4, 7, 10, 1, 4]);
        assert_eq!(first(&Sequence::range(0, u64::MAX, u64::MAX, 1, true), 2), [u64::MAX, u64::MAX - 1]);
    }

    #[test]
    fn a_cache_repeats_the_first_frames() {
        for (min, max, start, falling, cache) in [
            (0, 99, 0, false, 7),
            (0, 99, 50, true, 7),
            (0, 4, 3, false, 7),
            (0, 4, 1, true, 3),
            (0, 4, 0, true, 10),
        ] {
            let whole = Sequence::range(min, max, start, 1, falling);
            let cached = whole.clone().cached(cache).unwrap();
            let expected: Vec<_> = (0..20).map(|k| first(&whole, 20)[(k % cache) as usize]).collect();
            assert_eq!(first(&cached, 20), expected, "{min} {max} {start} {falling} {cache}");
        }
        let dice = Sequence::Random { min: 5, max: 9, seed: 3 }.cached(4).unwrap();
        let drawn = first(&dice, 8);
        assert_eq!(drawn[..4], drawn[4..]);
        assert!(drawn.iter().all(|v| (5..=9).contains(v)));
    }

    #[test]
    fn dealing_out_gives_each_its_frames() {
        for (count, every) in [(12_u64, 4), (12, 5), (7, 3), (1, 2)] {
            for falling in [false, true] {
                let whole = Sequence::range(10, 9 + count, 10 + count / 2, 1, falling);
                for which in 0..every {
                    let dealt = whole.clone().dealt(every, which).unwrap();
                    let expected: Vec<_> =
                        (0..30).map(|k| first(&whole, 200)[(which + k * every) as usize]).collect();
                    assert_eq!(first(&dealt, 30), expected, "{count} {every} {which} {falling}");
                }
            }
        }
    }

    #[test]
    fn a_driven_variable_waits_for_its_driver() {
        let slow = Sequence::range(1, 3, 1, 1, false).slowed(2).unwrap();
        assert_eq!(first(&slow, 8), [1, 1, 2, 2, 3, 3, 1, 1]);
        assert!(Sequence::range(0, 1 << 20, 0, 1, false).slowed(2).is_err());
    }
}
