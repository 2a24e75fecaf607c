//! The graph's unsafe island: the time-stamp counter and descriptors to wait on. Invariant: none is needed; the counter
//! has no precondition, and descriptors are only polled.

/// The processor's time-stamp counter, or nanoseconds where there is none.
#[inline(always)]
pub(crate) fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// A descriptor to wait on, borrowed for as long as its queue is.
#[inline]
pub(crate) fn borrow_fd<'a>(fd: std::os::fd::RawFd) -> Option<std::os::fd::BorrowedFd<'a>> {
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is not -1. It is only handed to poll(2), which answers POLLNVAL for one that was
    // closed; nothing is read, written or closed through it.
    Some(unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) })
}
