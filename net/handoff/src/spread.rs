//! Over which threads an interface's packets are spread: what both planes share.

use shoal_graph::MAX_THREADS;
use shoal_infra::zeroable_struct;
use shoal_wire::hash::Symmetry;

zeroable_struct! {
    /// One interface's threads. All zero: packets stay where they came in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Spread {
        /// A bit for each thread.
        threads: u64,
        /// Not 0: both directions of a flow meet on one thread.
        symmetric: u32,
    }
}

const _: () = assert!(MAX_THREADS <= u64::BITS as usize);

impl Spread {
    pub(crate) fn new(threads: impl IntoIterator<Item = usize>, symmetry: Symmetry) -> Self {
        let bits = threads.into_iter().fold(0, |bits, thread| bits | 1 << (thread % MAX_THREADS));
        Spread { threads: bits, symmetric: u32::from(symmetry == Symmetry::Symmetric) }
    }

    pub(crate) fn symmetry(&self) -> Symmetry {
        if self.symmetric == 0 { Symmetry::Directed } else { Symmetry::Symmetric }
    }

    /// The thread for a flow; `None` when none was named.
    #[inline(always)]
    pub(crate) fn pick(&self, hash: u32) -> Option<usize> {
        let count = u64::from(self.threads.count_ones());
        let mut bits = self.threads;
        for _ in 0..(u64::from(hash) * count) >> 32 {
            bits &= bits.wrapping_sub(1);
        }
        (bits != 0).then_some(bits.trailing_zeros() as usize)
    }

    /// The threads, in order.
    pub(crate) fn threads(&self) -> Vec<usize> {
        (0..MAX_THREADS).filter(|thread| self.threads >> thread & 1 == 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_gets_its_share_and_no_other_gets_any() {
        let spread = Spread::new([1, 3, 63], Symmetry::Directed);
        let mut share = [0; MAX_THREADS];
        for n in 0..30_000u32 {
            share[spread.pick(n.wrapping_mul(143_165)).unwrap()] += 1;
        }
        assert_eq!(share.iter().sum::<u32>(), 30_000);
        assert!([1, 3, 63].iter().all(|t| share[*t] > 9_900), "{share:?}");
        assert_eq!(spread.threads(), [1, 3, 63]);
    }

    #[test]
    fn without_threads_nobody_is_picked() {
        assert_eq!(Spread::new([], Symmetry::Symmetric).pick(u32::MAX), None);
        assert_eq!(Spread::new([5], Symmetry::Symmetric).pick(u32::MAX), Some(5));
    }
}
