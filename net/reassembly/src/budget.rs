//! How many buffers fragments that wait may hold, all threads and both families together: a part of the pool, so that a
//! flood of fragments leaves buffers to everybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Clones draw from the same.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    held: AtomicU32,
    most: AtomicU32,
}

impl Budget {
    /// Nothing is held.
    pub fn new(most: u32) -> Self {
        Budget(Arc::new(Shared { held: AtomicU32::new(0), most: AtomicU32::new(most) }))
    }

    /// Sets how many there may be. What is held already stays.
    pub fn set(&self, most: u32) {
        self.0.most.store(most, Ordering::Relaxed);
    }

    /// How many there may be.
    pub fn most(&self) -> u32 {
        self.0.most.load(Ordering::Relaxed)
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
