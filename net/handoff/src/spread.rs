//! Over which threads an interface's packets are spread: what both planes share.

use std::collections::BTreeMap;

use shoal_graph::MAX_THREADS;
use shoal_infra::zeroable_struct;
use shoal_wire::hash::Symmetry;

use crate::flow::{Depth, Label, Rules};

/// Buckets of flows, as many as the indirection table of a usual card has.
const BUCKETS: usize = 128;
/// The upper bits of a hash choose the bucket: the lower ones choose among paths further on.
const SHIFT: u32 = u32::BITS - BUCKETS.ilog2();

const _: () = assert!(BUCKETS.is_power_of_two() && MAX_THREADS <= u8::MAX as usize);

const SYMMETRIC: u32 = 1;
const OUTER: u32 = 1 << 1;
const LABEL: u32 = 1 << 2;

zeroable_struct! {
    /// One interface's threads. All zero: packets stay where they came in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Spread {
        /// For each bucket its thread; 0, the main thread, for none.
        buckets: [u8; BUCKETS],
        /// A bit for each rule that is not the usual one.
        rules: u32,
    }
}

impl Spread {
    pub(crate) const NONE: Spread = Spread { buckets: [0; BUCKETS], rules: 0 };

    /// Flows in equal shares over threads: of those before, as few change as possible.
    #[must_use]
    pub(crate) fn over(mut self, threads: &[usize], rules: Rules) -> Self {
        let mut left = shares(&self.buckets, threads);
        for bucket in &mut self.buckets {
            match left.get_mut(&usize::from(*bucket)).filter(|n| **n > 0) {
                Some(share) => *share -= 1,
                None => *bucket = 0,
            }
        }
        let mut lacking = left.iter().flat_map(|(thread, n)| std::iter::repeat_n(*thread as u8, *n));
        for bucket in self.buckets.iter_mut().filter(|bucket| **bucket == 0) {
            *bucket = lacking.next().unwrap_or(0);
        }
        let bit = |on: bool, bit| if on { bit } else { 0 };
        self.rules = bit(rules.symmetry == Symmetry::Symmetric, SYMMETRIC)
            | bit(rules.depth == Depth::Outer, OUTER)
            | bit(rules.label == Label::Counts, LABEL);
        self
    }

    /// What a flow is.
    #[inline(always)]
    pub(crate) fn rules(&self) -> Rules {
        let has = |bit| self.rules & bit != 0;
        Rules {
            symmetry: if has(SYMMETRIC) { Symmetry::Symmetric } else { Symmetry::Directed },
            depth: if has(OUTER) { Depth::Outer } else { Depth::Inner },
            label: if has(LABEL) { Label::Counts } else { Label::Ignored },
        }
    }

    /// The thread for a flow; `None` when none was named.
    #[inline(always)]
    pub(crate) fn pick(&self, hash: u32) -> Option<usize> {
        match self.buckets.get((hash >> SHIFT) as usize) {
            None | Some(0) => None,
            Some(thread) => Some(usize::from(*thread)),
        }
    }
}

/// How many buckets each thread should have. The shares that are one larger go to those that have most already.
fn shares(buckets: &[u8; BUCKETS], threads: &[usize]) -> BTreeMap<usize, usize> {
    let has = |thread: usize| buckets.iter().filter(|b| usize::from(**b) == thread).count();
    let mut order: Vec<usize> = threads.iter().copied().filter(|t| (1..MAX_THREADS).contains(t)).collect();
    order.sort_unstable();
    order.dedup();
    order.sort_by_key(|thread| std::cmp::Reverse(has(*thread)));
    let each = BUCKETS.checked_div(order.len()).unwrap_or(0);
    let larger = BUCKETS.checked_rem(order.len()).unwrap_or(0);
    order.iter().enumerate().map(|(at, thread)| (*thread, each + usize::from(at < larger))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(spread: &Spread) -> [u32; MAX_THREADS] {
        let mut share = [0; MAX_THREADS];
        for n in 0..30_000u32 {
            share[spread.pick(n.wrapping_mul(143_165)).unwrap()] += 1;
        }
        share
    }

    #[test]
    fn every_thread_gets_its_share_and_no_other_gets_any() {
        let share = share(&Spread::NONE.over(&[1, 3, 63], Rules::default()));
        assert_eq!(share.iter().sum::<u32>(), 30_000);
        assert!([1, 3, 63].iter().all(|t| share[*t] > 9_700), "{share:?}");
    }

    #[test]
    fn without_threads_no_thread_is_picked() {
        assert_eq!(Spread::NONE.over(&[], Rules::default()).pick(u32::MAX), None);
        assert_eq!(Spread::NONE.over(&[5], Rules::default()).pick(u32::MAX), Some(5));
        let before = Spread::NONE.over(&[1, 2], Rules::default());
        assert_eq!(before.over(&[0, MAX_THREADS], Rules::default()).pick(7), None, "those are no workers");
    }

    #[test]
    fn a_worker_that_comes_or_goes_moves_its_own_flows_only() {
        for n in 2..20 {
            let threads: Vec<usize> = (1..=n).collect();
            let before = Spread::NONE.over(&threads, Rules::default());
            let fewer = before.over(&threads[..n - 1], Rules::default());
            let moved =
                |a: &Spread, b: &Spread| a.buckets.iter().zip(b.buckets).filter(|(a, b)| **a != *b).count();
            let its = before.buckets.iter().filter(|b| usize::from(**b) == n).count();
            assert_eq!(moved(&before, &fewer), its, "{n}");
            let again = fewer.over(&threads, Rules::default());
            assert_eq!(moved(&fewer, &again), BUCKETS / n, "{n}");
        }
    }

    #[test]
    fn rules_come_back_as_they_were() {
        for symmetry in [Symmetry::Directed, Symmetry::Symmetric] {
            for depth in [Depth::Inner, Depth::Outer] {
                for label in [Label::Ignored, Label::Counts] {
                    let rules = Rules { symmetry, depth, label };
                    assert_eq!(Spread::NONE.over(&[1], rules).rules(), rules);
                }
            }
        }
    }
}
