//! One queue of a TAP: a frame per system call, in segments, with its vnet header.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use shoal_vnet::{VNET_HDR_LEN, VnetHdr};

use super::control::{self, Exclusive};
use crate::{Error, Mode};

/// Entries of the iovec: the vnet header and a 64 KB superframe in segments of 256 bytes at worst.
const IOVECS: usize = 257;

/// A frame that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// What it owes; raw, [`VnetHdr::validate`] it.
    pub vnet: VnetHdr,
    /// Its bytes, filling the segments in order.
    pub len: usize,
    /// It filled the segments to the last byte, so more may have been cut off (the kernel does not tell):
    /// drop it. Segments of 64 KiB + 64 bytes in sum never see this.
    pub truncated: bool,
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvError {
    /// Nothing there yet.
    #[error("no frame is waiting")]
    Empty,
    /// The interface is down.
    #[error("the interface is down")]
    Down,
    /// The interface was deleted.
    #[error("the interface is gone")]
    Gone,
    /// More segments than a call takes (256).
    #[error("too many segments")]
    TooManySegments,
    /// Any other error number.
    #[error("error {0}")]
    Errno(i32),
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The host does not keep up (EAGAIN, ENOBUFS).
    #[error("the queue is full")]
    QueueFull,
    /// The host's side is administratively down.
    #[error("the interface is down")]
    Down,
    /// The interface was deleted.
    #[error("the interface is gone")]
    Gone,
    /// Shorter than its headers, or a wrong vnet header.
    #[error("the frame is invalid")]
    Invalid,
    /// More segments than a call takes (256).
    #[error("too many segments")]
    TooManySegments,
    /// Any other error number.
    #[error("error {0}")]
    Errno(i32),
}

/// One queue of a TAP. Non-blocking; `Send`, so that it moves between workers; allocates only when opened.
#[derive(Debug)]
pub struct TapQueue {
    fd: OwnedFd,
    iov: Box<[libc::iovec; IOVECS]>,
}

// SAFETY: the raw pointers in `iov` are written and followed only inside one call with `&mut self`; between
// calls they are stale and never followed, on any thread.
unsafe impl Send for TapQueue {}

fn entry(start: *mut u8, len: usize) -> libc::iovec {
    libc::iovec { iov_base: start.cast(), iov_len: len }
}

impl TapQueue {
    pub(crate) fn open(
        name: &str,
        mode: Mode,
        exclusive: Exclusive,
        header_len: usize,
    ) -> Result<(Self, String), Error> {
        let (fd, name) = control::open(name, mode, exclusive, header_len)?;
        Ok((Self { fd, iov: Box::new([entry(ptr::null_mut(), 0); IOVECS]) }, name))
    }

    /// The same queue once more, for sending while the first receives.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let fd = self.fd.try_clone().map_err(Error::os("dup"))?;
        Ok(Self { fd, iov: Box::new([entry(ptr::null_mut(), 0); IOVECS]) })
    }

    /// Reads the next frame into `segments`; call it until it says [`RecvError::Empty`].
    pub fn recv<'a>(
        &mut self,
        segments: impl IntoIterator<Item = &'a mut [u8]>,
    ) -> Result<Received, RecvError> {
        let mut vnet = VnetHdr::default();
        let (mut used, mut room) = (1, 0);
        for segment in segments {
            let slot = self.iov.get_mut(used).ok_or(RecvError::TooManySegments)?;
            *slot = entry(segment.as_mut_ptr(), segment.len());
            room += segment.len();
            used += 1;
        }
        let [first, ..] = &mut *self.iov;
        *first = entry((&raw mut vnet).cast(), VNET_HDR_LEN);
        // SAFETY: the first `used` entries point at `vnet` and at segments that are borrowed mutably for
        // `'a`, which outlives this call; any bytes are valid in them.
        let rc = unsafe { libc::readv(self.fd.as_raw_fd(), self.iov.as_ptr(), used as i32) };
        let Ok(total) = usize::try_from(rc) else {
            return Err(match last_errno() {
                libc::EAGAIN | libc::EINTR => RecvError::Empty,
                libc::EBADFD | libc::ENODEV => RecvError::Gone,
                libc::EIO | libc::ENETDOWN => RecvError::Down,
                errno => RecvError::Errno(errno),
            });
        };
        let len = total.saturating_sub(VNET_HDR_LEN);
        Ok(Received { vnet, len, truncated: len >= room })
    }

    /// Sends one frame: its vnet header and its segments in order.
    pub fn send<'a>(
        &mut self,
        vnet: VnetHdr,
        segments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), SendError> {
        let mut used = 1;
        for segment in segments {
            let slot = self.iov.get_mut(used).ok_or(SendError::TooManySegments)?;
            *slot = entry(segment.as_ptr().cast_mut(), segment.len());
            used += 1;
        }
        let [first, ..] = &mut *self.iov;
        *first = entry((&raw const vnet).cast_mut().cast(), VNET_HDR_LEN);
        // SAFETY: the first `used` entries point at `vnet` and at segments borrowed for `'a`, which outlives
        // this call; `writev` only reads them.
        let rc = unsafe { libc::writev(self.fd.as_raw_fd(), self.iov.as_ptr(), used as i32) };
        if rc >= 0 {
            return Ok(());
        }
        Err(match last_errno() {
            libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::ENOMEM => SendError::QueueFull,
            libc::EBADFD | libc::ENODEV => SendError::Gone,
            libc::EIO | libc::ENETDOWN => SendError::Down,
            libc::EINVAL | libc::EMSGSIZE => SendError::Invalid,
            errno => SendError::Errno(errno),
        })
    }

    /// For epoll: readable when a frame waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsFd for TapQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
