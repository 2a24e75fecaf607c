//! How the kernel schedules the calling thread.
//!
//! Invariant: the kernel reads one `sched_param`, which outlives the call.

use std::io;

/// Sets policy and priority of the calling thread; threads that it starts inherit both.
///
/// # Errors
/// The policy is none, or the kernel does not permit it: `fifo` and `rr` need `CAP_SYS_NICE`.
pub fn set(policy: &str, priority: u8) -> io::Result<()> {
    let policy = match policy {
        "other" => libc::SCHED_OTHER,
        "batch" => libc::SCHED_BATCH,
        "idle" => libc::SCHED_IDLE,
        "fifo" => libc::SCHED_FIFO,
        "rr" => libc::SCHED_RR,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such policy")),
    };
    let param = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `param` is a whole `sched_param` that lives until the call has returned; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 41 of /proc/thread-self/stat: 3 is SCHED_BATCH.
    fn policy() -> String {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned()
    }

    #[test]
    fn a_thread_inherits_what_was_set() {
        if cfg!(miri) {
            return;
        }
        std::thread::spawn(|| {
            set("batch", 0).unwrap();
            assert_eq!(policy(), "3");
            std::thread::spawn(|| assert_eq!(policy(), "3")).join().unwrap();
            set("other", 0).unwrap();
            assert!(set("none", 0).is_err());
        })
        .join()
        .unwrap();
    }
}
