//! Invariant: a prefetch is a hint. It reads nothing the program can observe and cannot fault, so any
//! address will do.

/// Asks the CPU to fetch the first cache line of `target`, to be read soon.
#[inline(always)]
pub fn prefetch_read<T: ?Sized>(target: &T) {
    prefetch_address(std::ptr::from_ref(target).cast::<u8>());
}

/// Asks the CPU to fetch the cache line at `address`, which may be any.
#[inline(always)]
pub fn prefetch_address<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: PREFETCHT0 never faults, whatever the address, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
