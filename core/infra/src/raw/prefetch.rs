//! Invariant: a prefetch is a hint. It reads nothing the program can observe and cannot fault, so any
//! address will do.

/// Asks the CPU to fetch the first cache line of `target`, to be read soon.
#[inline(always)]
pub fn prefetch_read<T: ?Sized>(target: &T) {
    prefetch_address(std::ptr::from_ref(target).cast::<u8>());
}

/// Asks the CPU to fetch the cache line at `address`, which may be any, into the caches that are its own but the first.
///
/// For tables larger than the caches: the first cache can wait for some 20 lines at a time, those behind it for more. On a
/// Zen 4 a random line of 64 MB took 7.5 clocks in this way, and 19 by [`prefetch_address`], for 256 at a time.
#[inline(always)]
pub fn prefetch_far<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: PREFETCHT1 never faults, whatever the address, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
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
