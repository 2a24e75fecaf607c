//! Two loops that always take the same time, unless something else uses the processor.
//!
//! One is a chain of additions, each waiting for the one before: it tells how fast the core's clock runs. The other is
//! many chains side by side, as many additions at once as the core can do: it tells whether another thread of the
//! same core works, too. The chain alone would not notice that.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use shoal_graph::clock::tsc;

const STEPS: u64 = 10_000;
const TRIES: usize = 5;
/// Chains side by side.
const WIDE: usize = 8;

/// Clocks of one step of both loops.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pace {
    /// One chain.
    pub chain: f64,
    /// All chains side by side.
    pub wide: f64,
}

impl Default for Pace {
    /// Slower than any.
    fn default() -> Self {
        Pace { chain: f64::MAX, wide: f64::MAX }
    }
}

impl Pace {
    /// The pace now: the best of a few tries, so that it tells the processor's pace rather than an interruption.
    pub fn now() -> Pace {
        let best = |run: &dyn Fn() -> u64| {
            let clocks = (0..TRIES).map(|_| run()).min().unwrap_or(u64::MAX);
            clocks as f64 / STEPS as f64
        };
        Pace { chain: best(&run::<1>), wide: best(&run::<WIDE>) }
    }

    /// The faster of each.
    #[must_use]
    pub fn min(self, other: Pace) -> Pace {
        Pace { chain: self.chain.min(other.chain), wide: self.wide.min(other.wide) }
    }

    /// The slower of each.
    #[must_use]
    pub fn max(self, other: Pace) -> Pace {
        Pace { chain: self.chain.max(other.chain), wide: self.wide.max(other.wide) }
    }

    /// How many times slower than `best`, in the worse of both.
    pub fn slower_than(self, best: Pace) -> f64 {
        (self.chain / best.chain).max(self.wide / best.wide)
    }
}

/// Clocks of all steps of `N` chains.
fn run<const N: usize>() -> u64 {
    let start = tsc();
    let mut chains = black_box([1u64; N]);
    for i in 0..STEPS {
        for x in &mut chains {
            *x = x.rotate_left(7).wrapping_add(i);
        }
    }
    black_box(chains);
    tsc().wrapping_sub(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_are_not_optimised_away() {
        let pace = Pace::now();
        // No processor runs at ten times the pace of its time-stamp counter.
        assert!(pace.chain > 0.1 && pace.wide > 0.1, "{pace:?}");
    }

    #[test]
    fn a_pace_is_as_slow_as_the_slower_loop() {
        let best = Pace { chain: 2.0, wide: 4.0 };
        assert!((Pace { chain: 2.2, wide: 8.0 }.slower_than(best) - 2.0).abs() < 1e-9);
        assert_eq!(best.min(Pace { chain: 1.0, wide: 5.0 }), Pace { chain: 1.0, wide: 4.0 });
        assert_eq!(best.max(Pace { chain: 1.0, wide: 5.0 }), Pace { chain: 2.0, wide: 5.0 });
    }
}
