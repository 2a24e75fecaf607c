//! Which thread puts which datagram together.
//!
//! Fragments of a datagram may come in on several threads. All of them go to one, picked by the hash of what names the
//! datagram, so that each table belongs to one thread. The hash is keyed: no sender outside can send all to one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_graph::MAX_THREADS;

/// The threads that own datagrams: the workers, or the main thread when there are none. Clones are the same.
#[derive(Clone, Debug)]
pub struct Owners(Arc<AtomicU64>);

const _: () = assert!(MAX_THREADS <= u64::BITS as usize);

impl Default for Owners {
    fn default() -> Self {
        Owners(Arc::new(AtomicU64::new(1)))
    }
}

impl Owners {
    /// Says which threads there are.
    pub fn set(&self, threads: impl IntoIterator<Item = usize>) {
        let all = threads.into_iter().fold(0u64, |bits, thread| bits | 1 << (thread % MAX_THREADS));
        let workers = all & !1;
        self.0.store(if workers == 0 { 1 } else { workers }, Ordering::Relaxed);
    }

    /// The thread for a hash.
    pub fn pick(&self, hash: u64) -> usize {
        let mut bits = self.0.load(Ordering::Relaxed);
        let nth = (u128::from(hash) * u128::from(bits.count_ones())) >> 64;
        for _ in 0..nth {
            bits &= bits.wrapping_sub(1);
        }
        bits.trailing_zeros() as usize % MAX_THREADS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_gets_its_share_and_the_main_thread_only_when_alone() {
        let owners = Owners::default();
        assert_eq!(owners.pick(u64::MAX), 0);
        owners.set([0, 1, 3, 63]);
        let mut share = [0; MAX_THREADS];
        for n in 0..30_000u64 {
            share[owners.pick(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))] += 1;
        }
        assert_eq!(share[0], 0);
        assert!([1, 3, 63].iter().all(|t| share[*t] > 9_000), "{share:?}");
        owners.set([0]);
        assert_eq!((owners.pick(0), owners.pick(u64::MAX)), (0, 0));
    }
}
