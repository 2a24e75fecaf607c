//! How many buffers fragments that wait may hold, all threads and both families together: a part of the pool, so that a
//! flood of fragments leaves buffers to everybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::Pool;

/// Clones draw from the same.
#[derive(Clone)]
pub struct Budget(Arc<Shared>);

struct Shared {
    held: AtomicU32,
    most: Most,
}

enum Most {
    Fixed(AtomicU32),
    /// So many parts of a pool, which may grow.
    Part(Arc<Pool>, u32),
}

impl Budget {
    /// Nothing is held.
    pub fn new(most: u32) -> Self {
        Budget(Arc::new(Shared { held: AtomicU32::new(0), most: Most::Fixed(AtomicU32::new(most)) }))
    }

    /// Nothing is held; there may be one of so many of a pool's buffers.
    pub fn part_of(pool: Arc<Pool>, one_of: u32) -> Self {
        Budget(Arc::new(Shared { held: AtomicU32::new(0), most: Most::Part(pool, one_of.max(1)) }))
    }

    /// Sets how many there may be, if that was fixed. What is held already stays.
    pub fn set(&self, most: u32) {
        if let Most::Fixed(fixed) = &self.0.most {
            fixed.store(most, Ordering::Relaxed);
        }
    }

    /// How many there may be.
    pub fn most(&self) -> u32 {
        match &self.0.most {
            Most::Fixed(fixed) => fixed.load(Ordering::Relaxed),
            Most::Part(pool, one_of) => pool.total() / one_of,
        }
    }

    /// How many are held.
    pub fn held(&self) -> u32 {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Takes some, if there are as many.
    pub fn take(&self, count: u32) -> bool {
        let before = self.0.held.fetch_add(count, Ordering::Relaxed);
        let fits = before.saturating_add(count) <= self.most();
        if !fits {
            self.give(count);
        }
        fits
    }

    /// Gives back what was taken.
    pub fn give(&self, count: u32) {
        self.0.held.fetch_sub(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_may_be() {
        let budget = Budget::new(5);
        let other = budget.clone();
        assert!(budget.take(3) && other.take(2));
        assert!(!other.take(1));
        budget.give(3);
        assert!(!budget.take(4) && budget.take(3));
        budget.set(1);
        assert!(!budget.take(1));
        assert_eq!((budget.held(), other.most()), (5, 1));
    }
}
