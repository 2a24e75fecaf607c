//! How many owners a thing has that all of them read and none writes: an `Arc`'s count, for memory that is laid out by hand.

use crate::sync::{AtomicU32, Ordering, fence};

/// The count.
///
/// An owner of a share reads the value, and nothing writes it but this count. Who gives up the last one has the thing
/// alone: all that others read of it was read before.
#[derive(Debug)]
#[repr(transparent)]
pub struct Shares(AtomicU32);

impl Shares {
    /// So many.
    #[inline(always)]
    pub fn new(count: u32) -> Self {
        Shares(AtomicU32::new(count))
    }

    /// One more share, for the owner of one. Four thousand million shares do not fit in memory, so it cannot overflow.
    #[inline(always)]
    pub fn add(&self) {
        // A share is passed to another thread by something that orders what was done before; the count need not.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the caller, an owner of a share, has the only one. No other thread can make a second one then.
    #[inline(always)]
    pub fn is_last(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Gives a share up; whether it was the last one.
    #[inline(always)]
    #[must_use]
    pub fn release(&self) -> bool {
        // The last one has no other to fear, and saves itself the dearer way.
        if self.is_last() {
            return true;
        }
        // What was read by this share is read before the count falls.
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // And what the last one does comes after all of that.
        fence(Ordering::Acquire);
        true
    }
}
