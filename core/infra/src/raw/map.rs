//! Invariant: a `Mapping` is a range of address space that this value alone reserved and that stays
//! mapped, at the same address, until it is dropped. Its length and base are multiples of the page.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;

/// Size and alignment of a huge page.
pub(crate) const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// What a mapping is made of.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// Anonymous, readable and writable, zero until touched.
    ZeroMemory,
    /// Anonymous, address space only: no access.
    Reserved,
    /// As `ZeroMemory`, of reserved 2 MB pages, which are taken when touched: populate it, or meet SIGBUS.
    Huge,
    /// Shared memory of this file descriptor, readable and writable.
    Shared(BorrowedFd<'a>),
    /// Shared memory of this file descriptor, readable.
    View(BorrowedFd<'a>),
}

/// A private reservation of address space.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is an address and a length; the memory behind it belongs to the process and
// accesses to it are the business of the owner, whose own Send and Sync decide.
unsafe impl Send for Mapping {}
// SAFETY: as above; through `&self` access only grows, but for `commit_huge`, whose caller answers for the range.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `bytes`, aligned to 2 MB when that long.
    pub(crate) fn new(bytes: usize, kind: Kind<'_>) -> io::Result<Mapping> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "mapping is too large");
        let unit = if bytes >= HUGE { HUGE } else { PAGE };
        let bytes = bytes.max(1).checked_next_multiple_of(unit).ok_or_else(too_large)?;
        // Map enough to find an aligned range inside, then give back both ends.
        let slack = unit - PAGE;
        let total = bytes.checked_add(slack).ok_or_else(too_large)?;
        let first = if matches!(kind, Kind::ZeroMemory) { kind } else { Kind::Reserved };
        let mut mapping = Mapping { base: map(total, first)?, bytes: total };
        let head = mapping.base.addr().get().next_multiple_of(unit) - mapping.base.addr().get();
        mapping.trim(head, bytes);
        if matches!(kind, Kind::Shared(_) | Kind::View(_)) {
            let whole = NonNull::slice_from_raw_parts(mapping.base, bytes);
            // SAFETY: all of a reservation that this function has just made, which nothing refers to.
            if let Err(error) = unsafe { replace(whole, kind) } {
                // The range may have become another thread's: nothing is given back.
                mapping.bytes = 0;
                return Err(error);
            }
        }
        Ok(mapping)
    }

    /// Gives both ends back, and keeps `bytes` from `head` on.
    fn trim(&mut self, head: usize, bytes: usize) {
        let (base, total) = (self.base, self.bytes);
        debug_assert!(head + bytes <= total);
        // SAFETY: `head` and `head + bytes` are within the reservation, whose both ends nothing refers to: `&mut self`, and the
        // caller has not given an address away yet.
        unsafe {
            self.base = base.add(head);
            self.bytes = bytes;
            unmap(base, head);
            unmap(self.base.add(bytes), total - head - bytes);
        }
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

    /// As `commit`, with reserved 2 MB pages, all faulted in; on failure it is reserved address space again.
    ///
    /// # Safety
    /// The range was never committed, so nothing refers to it, and no other thread commits it meanwhile.
    pub(crate) unsafe fn commit_huge(&self, start: usize, bytes: usize) -> io::Result<()> {
        self.check(start, bytes)?;
        if !start.is_multiple_of(HUGE) || !bytes.is_multiple_of(HUGE) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: `check`: the range is within the mapping.
        let range = NonNull::slice_from_raw_parts(unsafe { self.base.add(start) }, bytes);
        // Without a reservation of pages, because that could fail after the old mapping is gone: the hole might
        // become another thread's memory, before anything is put there again.
        // SAFETY: the range is inside this mapping, and by the caller's promise nothing is there.
        unsafe { replace(range, Kind::Huge) }?;
        // Faulting in now turns a later SIGBUS (too few pages, or a limit of the cgroup or NUMA node) into an
        // error. Kernels before 5.14 do not know the request: they get no reserved pages.
        // SAFETY: the range was just mapped by us; populating changes no contents.
        if unsafe { libc::madvise(range.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // SAFETY: as above; no other code knows the pages.
        unsafe { replace(range, Kind::Reserved) }?;
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
        // SAFETY: all of what this value reserved; what refers to it borrows it or holds it.
        unsafe { unmap(self.base, self.bytes) };
    }
}

/// Maps something where nothing is.
fn map(bytes: usize, kind: Kind<'_>) -> io::Result<NonNull<u8>> {
    let (protection, flags, fd) = arguments(kind);
    // SAFETY: without an address the kernel picks free address space, so no existing mapping is replaced.
    made(unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) })
}

/// Maps something in place of what is there.
///
/// # Safety
/// The range is of the caller's own reservation, and nothing refers to what is in it.
unsafe fn replace(range: NonNull<[u8]>, kind: Kind<'_>) -> io::Result<()> {
    let (protection, flags, fd) = arguments(kind);
    let (at, flags) = (range.as_ptr().cast(), flags | libc::MAP_FIXED);
    // SAFETY: the caller's promise.
    made(unsafe { libc::mmap(at, range.len(), protection, flags, fd, 0) }).map(drop)
}

/// Protection, flags and descriptor of `mmap`.
fn arguments(kind: Kind<'_>) -> (i32, i32, i32) {
    let read_write = libc::PROT_READ | libc::PROT_WRITE;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let shared = libc::MAP_SHARED | libc::MAP_NORESERVE;
    match kind {
        Kind::ZeroMemory => (read_write, private, -1),
        Kind::Reserved => (libc::PROT_NONE, private, -1),
        Kind::Huge => (read_write, private | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB, -1),
        Kind::Shared(fd) => (read_write, shared, fd.as_raw_fd()),
        Kind::View(fd) => (libc::PROT_READ, shared, fd.as_raw_fd()),
    }
}

fn made(address: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)
}

/// Gives address space back; failure leaves it mapped, a leak.
///
/// # Safety
/// The range is of the caller's own reservation, and nothing refers to it any more.
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    if bytes != 0 {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
    }
}
