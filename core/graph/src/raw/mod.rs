//! The graph's unsafe island: the time-stamp counter, and values of a known type behind a trait. Invariant: the counter
//! has no precondition, and a [`Known`] says of what type its value is.

mod known;

pub(crate) use known::Known;

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
