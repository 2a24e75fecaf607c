//! An interface that hears everything, as long as this is kept.

use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use shoal_link::IfIndex;

use crate::Error;

/// A packet socket that receives nothing and only wants its interface promiscuous. The kernel counts such wishes, so
/// nobody else's is touched, and forgets this one when the process ends.
pub(crate) struct Promiscuous(#[allow(dead_code, reason = "kept open, never used")] OwnedFd);

impl Promiscuous {
    pub(crate) fn set(ifindex: IfIndex) -> Result<Self, Error> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(Error::last("socket(AF_PACKET)"));
        }
        // SAFETY: a descriptor that the kernel has just made for us, owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let request = libc::packet_mreq {
            mr_ifindex: ifindex.get() as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let len = size_of::<libc::packet_mreq>() as u32;
        let (fd, level, option) = (socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        // SAFETY: `request` is `len` readable bytes for the duration of the call.
        let rc = unsafe { libc::setsockopt(fd, level, option, (&raw const request).cast(), len) };
        if rc == 0 { Ok(Self(socket)) } else { Err(Error::last("PACKET_ADD_MEMBERSHIP")) }
    }
}
