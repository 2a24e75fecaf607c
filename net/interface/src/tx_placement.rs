//! Which transmit queue of a device each thread sends by.

use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::MAX_THREADS;

/// A queue for each thread. Threads read it once a frame.
pub struct TxPlacement {
    queue_of: [AtomicU16; MAX_THREADS],
    queues: AtomicU16,
}

impl TxPlacement {
    /// So many queues, given to the threads in turn.
    pub fn new(queues: usize) -> Self {
        let queues = queues.clamp(1, usize::from(u16::MAX)) as u16;
        let queue_of = std::array::from_fn(|thread| AtomicU16::new(thread as u16 % queues));
        TxPlacement { queue_of, queues: AtomicU16::new(queues) }
    }

    /// How many queues there are.
    pub fn queues(&self) -> usize {
        self.queues.load(Ordering::Relaxed).into()
    }

    /// Another number of queues. Threads that an operator has given a queue keep it if it is there; the others are given the
    /// queues in turn.
    pub fn resize(&self, queues: usize) {
        let queues = queues.clamp(1, usize::from(u16::MAX)) as u16;
        let before = self.queues.swap(queues, Ordering::Relaxed);
        for (thread, place) in (0u16..).zip(&self.queue_of) {
            let here = place.load(Ordering::Relaxed);
            if here == thread % before || here >= queues {
                place.store(thread % queues, Ordering::Relaxed);
            }
        }
    }

    /// The queue that a thread sends by.
    #[inline]
    pub fn queue(&self, thread: usize) -> usize {
        self.queue_of.get(thread).map_or(0, |queue| queue.load(Ordering::Relaxed).into())
    }

    /// Those of some threads that send by a queue.
    pub fn threads(&self, queue: usize, of: impl IntoIterator<Item = usize>) -> Vec<usize> {
        of.into_iter().filter(|thread| self.queue(*thread) == queue).collect()
    }

    /// Lets exactly these threads send by a queue; others that did go to the next one, which must be there.
    pub(crate) fn place(&self, queue: usize, threads: &[usize]) {
        let next = (queue + 1) % self.queues();
        for (thread, place) in self.queue_of.iter().enumerate() {
            let here = place.load(Ordering::Relaxed) as usize == queue;
            if threads.contains(&thread) {
                place.store(queue as u16, Ordering::Relaxed);
            } else if here {
                place.store(next as u16, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_one_queue_at_all_times() {
        let placement = TxPlacement::new(2);
        assert_eq!((placement.threads(0, 0..4), placement.threads(1, 0..4)), (vec![0, 2], vec![1, 3]));
        placement.place(0, &[3]);
        assert_eq!((placement.threads(0, 0..4), placement.threads(1, 0..4)), (vec![3], vec![0, 1, 2]));
        placement.resize(4);
        assert_eq!((placement.threads(0, 0..4), placement.threads(1, 0..4)), (vec![3], vec![0, 1, 2]));
        assert_eq!((placement.threads(2, 0..8), placement.threads(3, 0..8)), (vec![], vec![7]));
        placement.resize(1);
        assert_eq!(placement.threads(0, 0..4), [0, 1, 2, 3]);
        assert_eq!(TxPlacement::new(0).queue(5), 0);
        assert_eq!(placement.queue(usize::MAX), 0);
    }
}
