//! A packet socket and its options.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::sys::socket::{MsgFlags, recv};

use shoal_link::IfIndex;

use crate::Error;

/// An AF_PACKET SOCK_RAW socket, non-blocking, bound to nothing until [`PacketSocket::bind`].
pub(super) struct PacketSocket(OwnedFd);

/// Which frames a socket receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Receive {
    Everything,
    Nothing,
}

impl PacketSocket {
    pub(super) fn open() -> Result<Self, Error> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before the socket is bound to its interface.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(Error::last("socket(AF_PACKET)"));
        }
        // SAFETY: a descriptor that the kernel has just made for us, with no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// `setsockopt(SOL_PACKET)`. `T` is a plain C structure or integer.
    pub(super) fn set<T: Copy>(&self, option: i32, value: &T, what: &'static str) -> Result<(), Error> {
        self.set_at(libc::SOL_PACKET, option, value, what)
    }

    pub(super) fn set_at<T: Copy>(
        &self,
        level: i32,
        option: i32,
        value: &T,
        what: &'static str,
    ) -> Result<(), Error> {
        let (ptr, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as u32);
        // SAFETY: `ptr` points at `len` readable bytes for the duration of the call.
        let rc = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, ptr, len) };
        if rc == 0 { Ok(()) } else { Err(Error::last(what)) }
    }

    /// `getsockopt` of plain words (all bit patterns valid).
    pub(super) fn get_words<const N: usize>(
        &self,
        level: i32,
        option: i32,
        what: &'static str,
    ) -> Result<[u32; N], Error> {
        let mut value = [0u32; N];
        let mut len = size_of::<[u32; N]>() as u32;
        let ptr = value.as_mut_ptr().cast();
        // SAFETY: `ptr` points at `len` writable bytes; the kernel writes at most that many.
        let rc = unsafe { libc::getsockopt(self.0.as_raw_fd(), level, option, ptr, &raw mut len) };
        if rc == 0 { Ok(value) } else { Err(Error::last(what)) }
    }

    /// Joins a group of sockets that share an interface's frames by flow, or makes a new one (`unique`); tells its number.
    pub(super) fn join(&self, id: u16, unique: u32) -> Result<u16, Error> {
        let mode = libc::PACKET_FANOUT_HASH | unique | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        self.set(libc::PACKET_FANOUT, &(u32::from(id) | mode << 16), "PACKET_FANOUT")?;
        let [joined] = self.get_words(libc::SOL_PACKET, libc::PACKET_FANOUT, "PACKET_FANOUT")?;
        Ok(joined as u16)
    }

    /// The group that it is in.
    pub(super) fn group(&self) -> Result<Option<u16>, Error> {
        // One that is in none has zero; one of `join`'s has flags beside its number.
        let [word] = self.get_words(libc::SOL_PACKET, libc::PACKET_FANOUT, "PACKET_FANOUT")?;
        Ok((word != 0).then_some(word as u16))
    }

    /// Sizes a buffer of the socket; the kernel doubles the value. FORCE passes the system-wide limit but needs
    /// CAP_NET_ADMIN.
    pub(super) fn set_buffer(&self, force: i32, plain: i32, bytes: i32) -> Result<(), Error> {
        if self.set_at(libc::SOL_SOCKET, force, &bytes, "buffer of AF_PACKET").is_err() {
            self.set_at(libc::SOL_SOCKET, plain, &bytes, "buffer of AF_PACKET")?;
        }
        Ok(())
    }

    /// Takes one frame from the socket's queue, if there is one that fits: its length, or an error number.
    pub(super) fn receive(&self, into: &mut [u8]) -> Result<usize, i32> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        recv(self.0.as_raw_fd(), into, flags).map_err(|e| e as i32)
    }

    pub(super) fn bind(&self, ifindex: IfIndex, receive: Receive) -> Result<(), Error> {
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut addr: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
        addr.sll_family = libc::AF_PACKET as u16;
        addr.sll_ifindex = ifindex.get() as i32;
        addr.sll_protocol = match receive {
            Receive::Everything => (libc::ETH_P_ALL as u16).to_be(),
            Receive::Nothing => 0,
        };
        let len = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: `addr` is a sockaddr_ll of `len` bytes.
        let rc = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const addr).cast(), len) };
        if rc == 0 { Ok(()) } else { Err(Error::last("bind(AF_PACKET)")) }
    }

    /// The interface that the socket is bound to; `None` once the kernel has unregistered it.
    pub(super) fn bound_to(&self) -> Option<IfIndex> {
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut addr: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
        let mut len = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: `addr` is `len` writable bytes.
        let rc = unsafe { libc::getsockname(self.0.as_raw_fd(), (&raw mut addr).cast(), &raw mut len) };
        if rc == 0 && addr.sll_ifindex > 0 { Some(IfIndex::new(addr.sll_ifindex as u32)) } else { None }
    }

    /// Reads and clears the pending error (`SO_ERROR`); 0 when there is none.
    pub(super) fn take_error(&self) -> i32 {
        self.get_words(libc::SOL_SOCKET, libc::SO_ERROR, "SO_ERROR").map_or(0, |[errno]| errno as i32)
    }
}
