//! Invariant: a `Mapping` is a range of address space that this value alone reserved and that stays
//! mapped, at the same address, until it is dropped. Its length and base are multiples of the page.

use std::io;
use std::ptr::NonNull;

/// Size and alignment of a huge page.
pub(crate) const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// What a mapping is made of.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Anonymous, readable and writable, zero until touched.
    ZeroMemory,
    /// Anonymous, address space only: no access.
    Reserved,
    /// As `ZeroMemory`, of reserved 2 MB pages, which are taken when touched: populate it, or meet SIGBUS.
    Huge,
    /// Shared memory of this file descriptor, readable and writable.
    Shared(i32),
    /// Shared memory of this file descriptor, readable.
    View(i32),
}

/// A private reservation of address space.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is an address and a length; the memory behind it belongs to the process and
// accesses to it are the business of the owner, whose own Send and Sync decide.
unsafe impl Send for Mapping {}
// SAFETY: as above; no method takes `&self` and changes anything.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `bytes`, aligned to 2 MB when that long.
    pub(crate) fn new(bytes: usize, kind: Kind) -> io::Result<Mapping> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "mapping is too large");
        let unit = if bytes >= HUGE { HUGE } else { PAGE };
        let bytes = bytes.max(1).checked_next_multiple_of(unit).ok_or_else(too_large)?;
        // Map enough to find an aligned range inside, then give back both ends.
        let slack = unit - PAGE;
        let total = bytes.checked_add(slack).ok_or_else(too_large)?;
        let first = if matches!(kind, Kind::ZeroMemory) { kind } else { Kind::Reserved };
        let reserved = map(std::ptr::null_mut(), total, first)?;
        let head = reserved.addr().get().next_multiple_of(unit) - reserved.addr().get();
        // SAFETY: head <= slack, so `head` and `head + bytes` are within the `total` bytes reserved.
        let base = unsafe { reserved.add(head) };
        unmap(reserved, head);
        // SAFETY: as above: the end of the aligned range is within or just past the reservation.
        unmap(unsafe { base.add(bytes) }, slack - head);
        if matches!(kind, Kind::Shared(_) | Kind::View(_)) {
            // On failure the range stays as it is, a leak: it may have become somebody else's.
            map(base.as_ptr(), bytes, kind)?;
        }
        Ok(Mapping { base, bytes })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes `[start, start + bytes)` of reserved address space readable and writable, zero.
    pub(crate) fn commit(&self, start: usize, bytes: usize) -> io::Result<()> {
        self.check(start, bytes)?;
        // SAFETY: the range is inside this mapping; giving more access invalidates nothing.
        let result = unsafe {
            libc::mprotect(self.base.add(start).as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// As `commit`, with reserved 2 MB pages, all faulted in. Only for a range that was never
    /// committed: on failure it is reserved address space again.
    pub(crate) fn commit_huge(&self, start: usize, bytes: usize) -> io::Result<()> {
        self.check(start, bytes)?;
        if !start.is_multiple_of(HUGE) || !bytes.is_multiple_of(HUGE) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: `check`: start is within the mapping.
        let at = unsafe { self.base.add(start) };
        // Without a reservation of pages, because that could fail after the old mapping is gone: the hole might
        // become another thread's memory, before anything is put there again.
        map(at.as_ptr(), bytes, Kind::Huge)?;
        // Faulting in now turns a later SIGBUS (too few pages, or a limit of the cgroup or NUMA node) into an
        // error. Kernels before 5.14 do not know the request: they get no reserved pages.
        // SAFETY: the range was just mapped by us; populating changes no contents.
        if unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        map(at.as_ptr(), bytes, Kind::Reserved)?;
        Err(error)
    }

    /// Faults `[start, start + bytes)` in, rounded to pages, where the kernel knows how (5.14); else does nothing.
    pub(crate) fn populate(&self, start: usize, bytes: usize) -> io::Result<()> {
        self.check(start, bytes)?;
        let (first, end) = (start / PAGE * PAGE, (start + bytes).next_multiple_of(PAGE).min(self.bytes));
        // SAFETY: the range is inside this mapping; populating changes no contents.
        let done = unsafe {
            let at = self.base.add(first).as_ptr().cast();
            libc::madvise(at, end.saturating_sub(first), libc::MADV_POPULATE_WRITE)
        };
        match io::Error::last_os_error() {
            error if done != 0 && error.raw_os_error() != Some(libc::EINVAL) => Err(error),
            _ => Ok(()),
        }
    }

    fn check(&self, start: usize, bytes: usize) -> io::Result<()> {
        match start.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// Asks for transparent huge pages in `[start, start + bytes)`; false when the kernel has none.
    pub(crate) fn advise_huge(&self, start: usize, bytes: usize) -> bool {
        if self.check(start, bytes).is_err() {
            return false;
        }
        // SAFETY: the range is inside this mapping; the advice does not change its contents.
        unsafe { libc::madvise(self.base.add(start).as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) == 0 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base, self.bytes);
    }
}

/// `mmap`; with an address, replaces what is there, so that must be the caller's own.
fn map(at: *mut u8, bytes: usize, kind: Kind) -> io::Result<NonNull<u8>> {
    let read_write = libc::PROT_READ | libc::PROT_WRITE;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let (protection, mut flags, fd) = match kind {
        Kind::ZeroMemory => (read_write, private, -1),
        Kind::Reserved => (libc::PROT_NONE, private, -1),
        Kind::Huge => (read_write, private | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB, -1),
        Kind::Shared(fd) => (read_write, libc::MAP_SHARED | libc::MAP_NORESERVE, fd),
        Kind::View(fd) => (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_NORESERVE, fd),
    };
    if !at.is_null() {
        flags |= libc::MAP_FIXED;
    }
    // SAFETY: without an address the kernel picks free address space; with one, callers
    // pass a range inside their own reservation that nobody has been given yet.
    let address = unsafe { libc::mmap(at.cast(), bytes, protection, flags, fd, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)
}

fn unmap(base: NonNull<u8>, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: callers pass a range of their own reservation that nothing refers to: slack nobody
    // was told about, or a mapping whose owner is being dropped. Failure leaves it mapped: a leak.
    unsafe {
        libc::munmap(base.as_ptr().cast(), bytes);
    }
}
