//! An allocator that counts, to prove that packets are moved without allocating.
//!
//! ```
//! use shoal_testkit::alloc::{CountingAllocator, allocations};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! fn main() {
//!     assert_eq!(allocations(|| 2 + 2), 0);
//!     assert_eq!(allocations(|| drop(vec![1, 2])), 1);
//! }
//! ```
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a count of each thread's allocations (and reallocations).
#[derive(Debug)]
pub struct CountingAllocator;

fn count() {
    // A thread that is going away counts no more.
    let _ = COUNT.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator unchanged, which keeps the contract.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(p, layout, size) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(p, layout) }
    }
}

/// How often the calling thread allocates while it runs `what`.
///
/// # Panics
/// [`CountingAllocator`] is not this program's global allocator: a count of 0 would prove nothing.
pub fn allocations<R>(what: impl FnOnce() -> R) -> u64 {
    let now = || COUNT.with(Cell::get);
    let before = now();
    drop(black_box(Box::new(1u8)));
    assert!(now() > before, "CountingAllocator is not the #[global_allocator] of this program");
    let before = now();
    let result = black_box(what());
    let after = now();
    drop(result);
    after - before
}
