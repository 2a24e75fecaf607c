//! Exact fractions: rates and times of a profile stay what they are until the very end.

use std::cmp::Ordering;
use std::time::Duration;

use shoal_lab_plan::Rate;

/// A fraction that is not negative. Where 128 bits do not hold it, it is the nearest that they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction {
    above: u128,
    below: u128,
}

impl Fraction {
    pub(crate) const ZERO: Fraction = Fraction { above: 0, below: 1 };

    /// `above / below`; a `below` of 0 is taken as 1.
    pub(crate) fn new(above: u128, below: u128) -> Fraction {
        let by = greatest_common_divisor(above, below.max(1)).max(1);
        Fraction { above: above / by, below: below.max(1) / by }
    }

    pub(crate) fn whole(number: u64) -> Fraction {
        Fraction { above: number.into(), below: 1 }
    }

    /// A number as it was written in decimal, to nine digits behind the point; none if negative or not finite.
    pub(crate) fn of(number: f64) -> Option<Fraction> {
        if !number.is_finite() || !(0.0..1e18).contains(&number) {
            return None;
        }
        let (mut scaled, mut below) = (number, 1_u128);
        while scaled.fract() != 0.0 && below < 1_000_000_000 {
            below *= 10;
            // Computed from the number each time, so that no error adds up.
            scaled = number * below as f64;
            if (scaled - scaled.round()).abs() < 1e-6 && scaled < 9e15 {
                scaled = scaled.round();
            }
        }
        Some(Fraction::new(scaled.round() as u128, below))
    }

    pub(crate) fn is_zero(self) -> bool {
        self.above == 0
    }

    pub(crate) fn times(self, other: Fraction) -> Fraction {
        let (a, b) = (Fraction::new(self.above, other.below), Fraction::new(other.above, self.below));
        let (mut a, mut b) = (a, b);
        loop {
            if let (Some(above), Some(below)) = (a.above.checked_mul(b.above), a.below.checked_mul(b.below)) {
                return Fraction::new(above, below);
            }
            (a, b) = (a.coarser(), b.coarser());
        }
    }

    /// By 0 it is 0: callers refuse rates of 0 before.
    pub(crate) fn over(self, other: Fraction) -> Fraction {
        if other.above == 0 {
            return Fraction::ZERO;
        }
        self.times(Fraction { above: other.below, below: other.above })
    }

    pub(crate) fn plus(self, other: Fraction) -> Fraction {
        let (mut a, mut b) = (self, other);
        loop {
            let left = a.above.checked_mul(b.below);
            let right = b.above.checked_mul(a.below);
            let sum = left.zip(right).and_then(|(left, right)| left.checked_add(right));
            if let (Some(above), Some(below)) = (sum, a.below.checked_mul(b.below)) {
                return Fraction::new(above, below);
            }
            (a, b) = (a.coarser(), b.coarser());
        }
    }

    /// 0 where `other` is greater.
    pub(crate) fn minus(self, other: Fraction) -> Fraction {
        if self.compare(other) != Ordering::Greater {
            return Fraction::ZERO;
        }
        let (mut a, mut b) = (self, other);
        loop {
            let (left, right) = (a.above.checked_mul(b.below), b.above.checked_mul(a.below));
            if let (Some(left), Some(right), Some(below)) = (left, right, a.below.checked_mul(b.below)) {
                return Fraction::new(left.saturating_sub(right), below);
            }
            (a, b) = (a.coarser(), b.coarser());
        }
    }

    pub(crate) fn compare(self, other: Fraction) -> Ordering {
        match (self.above.checked_mul(other.below), other.above.checked_mul(self.below)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => self.number().total_cmp(&other.number()),
        }
    }

    pub(crate) fn number(self) -> f64 {
        self.above as f64 / self.below as f64
    }

    /// The whole part.
    pub(crate) fn floor(self) -> u64 {
        u64::try_from(self.above / self.below).unwrap_or(u64::MAX)
    }

    /// Frames a second as the plan has them.
    pub(crate) fn rate(self) -> Rate {
        let mut fitting = self;
        while u64::try_from(fitting.above).is_err() || u64::try_from(fitting.below).is_err() {
            fitting = fitting.coarser();
        }
        Rate { frames: fitting.above as u64, seconds: (fitting.below as u64).max(1) }
    }

    /// Seconds as a duration, to the nanosecond below.
    pub(crate) fn duration(self) -> Duration {
        Duration::from_nanos(self.times(Fraction::whole(1_000_000_000)).floor())
    }

    pub(crate) fn seconds(duration: Duration) -> Fraction {
        Fraction::new(duration.as_nanos(), 1_000_000_000)
    }

    fn coarser(self) -> Fraction {
        Fraction { above: self.above >> 1, below: (self.below >> 1).max(1) }
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_what_they_were_written_as() {
        for (number, above, below) in [(0.1, 1, 10), (28.0, 28, 1), (2.5, 5, 2), (1e10, 10_000_000_000, 1)] {
            let found = Fraction::of(number).unwrap();
            assert_eq!((found.above, found.below), (above, below), "{number}");
        }
        assert!(Fraction::of(f64::NAN).is_none() && Fraction::of(-1.0).is_none());
    }

    #[test]
    fn sums_and_products_are_exact() {
        let third = Fraction::new(1, 3);
        assert_eq!(third.plus(Fraction::new(1, 6)).compare(Fraction::new(1, 2)), Ordering::Equal);
        assert_eq!(third.times(Fraction::whole(3)).compare(Fraction::whole(1)), Ordering::Equal);
        assert_eq!(Fraction::whole(10_000_000_000).over(Fraction::whole(672)).rate().frames, 312_500_000);
        assert_eq!(third.minus(Fraction::whole(1)).floor(), 0);
    }

    #[test]
    fn what_is_too_large_becomes_coarser_and_does_not_hang() {
        let large = Fraction::new(u128::MAX, 3);
        let product = large.times(large);
        assert!(product.number() > 1e37, "{product:?}");
        assert!(large.rate().frames > 0);
    }
}
