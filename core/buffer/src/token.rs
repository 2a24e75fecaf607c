//! The linear token: the right to one buffer.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The right to one packet: its first buffer and all segments chained to it.
///
/// It cannot be copied or made from a number. Send it on in a [`Frame`](crate::Frame) or give it back with
/// [`Cache::free`](crate::Cache::free); one that is dropped instead is put on the [`lost`] list.
#[derive(Debug)]
#[repr(transparent)]
pub struct Buffer(NonZeroU32);

impl Buffer {
    /// Takes over an index. Crate-private: the caller must have removed it from its one place.
    #[inline(always)]
    pub(crate) fn from_index(index: NonZeroU32) -> Self {
        Buffer(index)
    }

    /// Gives the index up to a new place.
    #[inline(always)]
    pub(crate) fn into_index(self) -> u32 {
        std::mem::ManuallyDrop::new(self).0.get()
    }

    /// The buffer's number, for display (`buffer 0x4a3`).
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.0.get()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        lost::add(&[self.0.get()]);
    }
}

/// Tokens that were dropped instead of being sent on or freed: a defect, but not a leak.
pub mod lost {
    use super::*;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static LIST: Mutex<Vec<u32>> = Mutex::new(Vec::new());

    #[cold]
    pub(crate) fn add(indices: &[u32]) {
        COUNT.fetch_add(indices.len() as u64, Ordering::Relaxed);
        LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(indices);
    }

    /// How many tokens were ever lost in this process; anything but 0 is a defect worth a report.
    pub fn count() -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    /// Takes the lost indices for return to their pools.
    pub(crate) fn take() -> Vec<u32> {
        std::mem::take(&mut *LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
