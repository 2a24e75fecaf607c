//! The ioctls of `/dev/net/tun` (linux/if_tun.h).

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{Carrier, Error, Mode, Offload};

nix::ioctl_write_ptr_bad!(tun_set_iff, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(tun_set_offload, libc::TUNSETOFFLOAD);
nix::ioctl_write_int_bad!(tun_set_persist, libc::TUNSETPERSIST);
nix::ioctl_write_ptr_bad!(tun_set_queue, libc::TUNSETQUEUE, libc::ifreq);
nix::ioctl_write_ptr_bad!(tun_set_vnet_hdr_sz, libc::TUNSETVNETHDRSZ, i32);
nix::ioctl_write_ptr_bad!(tun_set_vnet_le, libc::TUNSETVNETLE, i32);
nix::ioctl_write_ptr_bad!(tun_set_carrier, libc::TUNSETCARRIER, i32);

const OFFLOAD_TCP: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const OFFLOAD_UDP: u32 = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// Whether the interface must be new.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusive {
    /// It must not exist.
    Yes,
    /// It may exist: a further queue, or a persistent interface.
    No,
}

fn check(what: &'static str, result: nix::Result<i32>) -> Result<(), Error> {
    result.map(|_| ()).map_err(|e| Error::Os { what, source: e.into() })
}

/// Opens one queue of the interface `name` in the namespace of the calling thread; returns the name the
/// kernel chose where `name` has a `%d`.
pub(super) fn open(
    name: &str,
    mode: Mode,
    exclusive: Exclusive,
    header_len: usize,
) -> Result<(OwnedFd, String), Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(Error::os("open(/dev/net/tun)"))?;
    let fd = OwnedFd::from(file);
    let kind = if mode == Mode::Tap { libc::IFF_TAP } else { libc::IFF_TUN };
    let excl = if exclusive == Exclusive::Yes { libc::IFF_TUN_EXCL } else { 0 };
    let flags = kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE | excl;
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte less than the field: the last stays the terminator.
    for (slot, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: TUNSETIFF reads and writes an ifreq; `request` is one, and mutable.
    let made = unsafe { tun_set_iff(fd.as_raw_fd(), &raw mut request) };
    if made == Err(nix::errno::Errno::EBUSY) {
        return Err(Error::Exists { name: name.into() });
    }
    check("TUNSETIFF", made)?;
    set_header_len(fd.as_fd(), header_len)?;
    // SAFETY: the name is terminated: the kernel writes at most IFNAMSIZ bytes including the terminator.
    let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
    Ok((fd, name.to_string_lossy().into_owned()))
}

/// Header format, for all queues of the interface: one that attaches says the same as those that are there.
pub(crate) fn set_header_len(fd: BorrowedFd<'_>, len: usize) -> Result<(), Error> {
    let (size, little_endian) = (len as i32, 1i32);
    // SAFETY: TUNSETVNETHDRSZ reads an int.
    check("TUNSETVNETHDRSZ", unsafe { tun_set_vnet_hdr_sz(fd.as_raw_fd(), &raw const size) })?;
    // SAFETY: TUNSETVNETLE reads an int.
    check("TUNSETVNETLE", unsafe { tun_set_vnet_le(fd.as_raw_fd(), &raw const little_endian) })?;
    Ok(())
}

/// Says what the router takes from the host, for all queues of the interface.
pub(crate) fn set_offload(fd: BorrowedFd<'_>, offload: Offload) -> Result<(), Error> {
    let (wanted, least) = match offload {
        // Kernels before 6.2 do not know UDP segmentation.
        Offload::Gso => (OFFLOAD_TCP | OFFLOAD_UDP, OFFLOAD_TCP),
        Offload::Checksum => (libc::TUN_F_CSUM, libc::TUN_F_CSUM),
        Offload::Nothing => (0, 0),
    };
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    if unsafe { tun_set_offload(fd.as_raw_fd(), wanted as i32) }.is_ok() {
        return Ok(());
    }
    // SAFETY: as above.
    check("TUNSETOFFLOAD", unsafe { tun_set_offload(fd.as_raw_fd(), least as i32) })
}

/// Makes the interface outlive its queues.
pub(crate) fn set_persistent(fd: BorrowedFd<'_>) -> Result<(), Error> {
    // SAFETY: TUNSETPERSIST takes its argument by value.
    check("TUNSETPERSIST", unsafe { tun_set_persist(fd.as_raw_fd(), 1) })
}

/// Gives a queue no frames any more. The interface is there as long as it is open.
pub(crate) fn detach(fd: BorrowedFd<'_>) -> Result<(), Error> {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_flags = libc::IFF_DETACH_QUEUE as i16;
    // SAFETY: TUNSETQUEUE reads an ifreq.
    check("TUNSETQUEUE", unsafe { tun_set_queue(fd.as_raw_fd(), &raw const request) })
}

/// Sets the carrier.
pub(crate) fn set_carrier(fd: BorrowedFd<'_>, carrier: Carrier) -> Result<(), Error> {
    let value = i32::from(carrier == Carrier::On);
    // SAFETY: TUNSETCARRIER reads an int.
    check("TUNSETCARRIER", unsafe { tun_set_carrier(fd.as_raw_fd(), &raw const value) })
}

/// Whether a queue has no interface any more.
pub(crate) fn is_detached(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    let polled = poll(&mut fds, PollTimeout::ZERO);
    let [fd] = fds;
    polled.is_ok() && fd.revents().is_some_and(|events| events.contains(PollFlags::POLLERR))
}
