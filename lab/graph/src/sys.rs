//! The unsafe island: performance counters of the kernel, large pages, requests to valgrind.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// `struct perf_event_attr` of linux/perf_event.h in its first version, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;
const PERF_EVENT_IOC_DISABLE: libc::c_ulong = 0x2401;

/// Asks the kernel to put `memory` on large pages; without them, it is as before.
pub fn advise_huge(memory: &mut [u64]) {
    const HUGE: usize = 2 << 20;
    let at = memory.as_mut_ptr().addr();
    let (start, end) = (at.next_multiple_of(HUGE), (at + size_of_val(memory)) / HUGE * HUGE);
    if start < end {
        // SAFETY: the whole pages from `start` to `end` are within `memory`, and the advice changes no contents.
        unsafe {
            libc::madvise(memory.as_mut_ptr().byte_add(start - at).cast(), end - start, libc::MADV_HUGEPAGE)
        };
    }
}

/// The processor's count of instructions of the calling thread in user mode.
#[derive(Debug)]
pub struct Instructions(File);

impl Instructions {
    /// A counter that rests.
    pub fn open() -> io::Result<Self> {
        let attr = PerfEventAttr {
            kind: PERF_TYPE_HARDWARE,
            size: size_of::<PerfEventAttr>() as u32,
            config: PERF_COUNT_HW_INSTRUCTIONS,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV,
            ..PerfEventAttr::default()
        };
        // SAFETY: the kernel reads `attr.size` bytes of `attr`, which is that long and outlives the call.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor; it has no other owner.
        Ok(Instructions(unsafe { File::from_raw_fd(fd as i32) }))
    }

    fn control(&self, request: libc::c_ulong) {
        // SAFETY: the descriptor is open as long as `self`; these requests take no pointer.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request, 0) };
    }

    /// Counts from now on.
    pub fn enable(&self) {
        self.control(PERF_EVENT_IOC_ENABLE);
    }

    /// Counts no more.
    pub fn disable(&self) {
        self.control(PERF_EVENT_IOC_DISABLE);
    }

    /// The count.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

/// First of callgrind's requests (valgrind/callgrind.h): the letters C and T.
const CALLGRIND: u64 = (b'C' as u64) << 24 | (b'T' as u64) << 16;
const TOGGLE_COLLECT: u64 = CALLGRIND + 2;
const START_INSTRUMENTATION: u64 = CALLGRIND + 4;

/// Asks callgrind to count, or to count no more. Nothing happens outside of valgrind.
#[inline(always)]
pub fn valgrind_toggle_collect() {
    valgrind_request(TOGGLE_COLLECT);
}

/// Asks callgrind to look at instructions from now on; before, it only runs them.
pub fn valgrind_start_instrumentation() {
    valgrind_request(START_INSTRUMENTATION);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn valgrind_request(request: u64) {
    let arguments = [request, 0, 0, 0, 0, 0];
    // SAFETY: for the processor the four rotations together turn rdi by 128 bits, which changes nothing, and the
    // exchange of rbx with itself neither; valgrind knows the sequence, reads the six words rax points to, which
    // outlive it, and writes rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") 0u64 => _,
            options(nostack),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn valgrind_request(_: u64) {}
