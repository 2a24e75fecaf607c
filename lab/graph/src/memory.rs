//! What a cache line costs that is not near: the bound of every table that is larger than the caches.
//!
//! The accesses do not wait for each other, so the processor overlaps as many as it can. No lookup that needs one line
//! which is not in a cache can take less, however it is written. A virtual machine is often given a part of the last
//! cache only; the sizes show where its share ends.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use shoal_graph::clock::tsc;

use crate::sys;

/// Sizes looked at. The last is about that of the tables of `ip4-1m`.
const MEGABYTES: [usize; 5] = [1, 4, 8, 16, 64];
/// Words of a cache line.
const LINE: usize = 8;
const ACCESSES: u64 = 1 << 18;
const TRIES: usize = 5;

/// The cost of a line among so many.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineCost {
    /// Size of the memory.
    pub megabytes: usize,
    /// Clocks of one access, at best.
    pub clocks: f64,
}

/// Measures all sizes; takes a tenth of a second.
pub fn line_costs() -> Vec<LineCost> {
    let most = MEGABYTES.into_iter().max().unwrap_or_default();
    let mut memory = vec![0_u64; most << 17];
    sys::advise_huge(&mut memory);
    // Written, so that each page is one of its own.
    memory.iter_mut().step_by(LINE).for_each(|word| *word = 1);
    MEGABYTES.map(|megabytes| LineCost { megabytes, clocks: cost(&memory, megabytes) }).into()
}

fn cost(memory: &[u64], megabytes: usize) -> f64 {
    let lines = (megabytes << 17) / LINE;
    let best = (0..TRIES).map(|_| run(memory, lines as u64)).min().unwrap_or(u64::MAX);
    best as f64 / ACCESSES as f64
}

/// Clocks of accesses to lines that an inexpensive generator chooses.
fn run(memory: &[u64], lines: u64) -> u64 {
    let (mut state, mut sum) = (black_box(1_u32), 0_u64);
    let start = tsc();
    for _ in 0..ACCESSES {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let line = (u64::from(state) * lines) >> 32;
        sum = sum.wrapping_add(memory.get(line as usize * LINE).copied().unwrap_or_default());
    }
    black_box(sum);
    tsc().wrapping_sub(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_a_cost() {
        let costs = line_costs();
        assert_eq!(costs.iter().map(|c| c.megabytes).collect::<Vec<_>>(), MEGABYTES);
        assert!(costs.iter().all(|c| c.clocks.is_finite() && c.clocks > 0.0), "{costs:?}");
    }
}
