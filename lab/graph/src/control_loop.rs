//! A loop that always takes the same time, unless something else uses the processor.

use std::hint::black_box;

use shoal_graph::clock::tsc;

const STEPS: u64 = 20_000;
const TRIES: usize = 5;

/// Clocks of one step: a rotation and an addition, each waiting for the one before. The best of a few tries, so
/// that it tells the processor's pace rather than an interruption.
pub fn clocks_per_step() -> f64 {
    let best = (0..TRIES).map(|_| once()).min().unwrap_or(u64::MAX);
    best as f64 / STEPS as f64
}

fn once() -> u64 {
    let start = tsc();
    let mut x = black_box(1u64);
    for i in 0..STEPS {
        x = x.rotate_left(7).wrapping_add(i);
    }
    black_box(x);
    tsc().wrapping_sub(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_not_optimised_away() {
        // No processor runs at ten times the pace of its time-stamp counter.
        assert!(clocks_per_step() > 0.1);
    }
}
