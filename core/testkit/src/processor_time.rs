//! What work costs, without the work of others on the machine.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of a processor that this thread has had.
///
/// # Panics
/// The system has no such clock.
pub fn processor_time() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has it");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
