//! Memberships of a packet socket (packet(7)): which frames an interface passes on beside those of its own address.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::IfIndex;

/// What an interface is asked to pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// All multicast frames.
    AllMulticast,
    /// Frames of one more station.
    Unicast([u8; 6]),
    /// All frames.
    Promiscuous,
}

/// A packet socket that receives nothing.
#[derive(Debug)]
pub(crate) struct MembershipSocket(OwnedFd);

impl MembershipSocket {
    /// Opens one in the network namespace of the calling thread.
    pub(crate) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // Protocol 0: it is bound to nothing and receives nothing.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that the kernel has just made, and that has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Begins or ends a membership. The kernel counts those of all sockets, and ends this socket's when it is closed.
    pub(crate) fn set(&self, link: IfIndex, membership: Membership, on: bool) -> io::Result<()> {
        let (kind, station) = match membership {
            Membership::AllMulticast => (libc::PACKET_MR_ALLMULTI, None),
            Membership::Unicast(mac) => (libc::PACKET_MR_UNICAST, Some(mac)),
            Membership::Promiscuous => (libc::PACKET_MR_PROMISC, None),
        };
        let mut request = libc::packet_mreq {
            mr_ifindex: link.get() as i32,
            mr_type: kind as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        if let Some(mac) = station {
            request.mr_alen = mac.len() as u16;
            request.mr_address.iter_mut().zip(mac).for_each(|(to, from)| *to = from);
        }
        let option = if on { libc::PACKET_ADD_MEMBERSHIP } else { libc::PACKET_DROP_MEMBERSHIP };
        let (value, len) = ((&raw const request).cast(), size_of::<libc::packet_mreq>() as u32);
        // SAFETY: `request` is `len` readable bytes for the duration of the call.
        let rc = unsafe { libc::setsockopt(self.0.as_raw_fd(), libc::SOL_PACKET, option, value, len) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
