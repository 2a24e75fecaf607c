//! Eventfds: how one end of a shared ring wakes the other, which may be a stranger's.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::ReadWriteFlags;

use crate::PeerFd;
use crate::sys::Signal;

/// An eventfd that a peer may have, too, to be woken by. The peer may do to it whatever can be done to a descriptor.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

/// Why a peer's descriptor is not used.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// It is something else, on which reading or writing might take long.
    #[error("the interrupt's descriptor is no eventfd")]
    NoEventFd,
    /// Waking the peer could take as long as the peer wants.
    #[error("no way to wake a peer without waiting for it: {0} (io_setup(2) of Linux 5.8, fs.aio-max-nr)")]
    NoSignal(io::Error),
}

impl EventFd {
    /// A new one.
    ///
    /// # Errors
    /// The system gives none.
    pub fn create() -> io::Result<Self> {
        Ok(EventFd(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// A peer's, which it has sent.
    ///
    /// # Errors
    /// It is something else.
    pub fn of_peer(fd: impl Into<PeerFd>) -> Result<Self, EventError> {
        let fd = fd.into();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()));
        if !link.is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"anon_inode:[eventfd")) {
            return Err(EventError::NoEventFd);
        }
        Ok(EventFd(fd.into_known()))
    }

    /// The same one once more.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(EventFd(self.0.try_clone()?))
    }

    /// Forgets that somebody wanted to wake this end. Never waits: what a flag of the descriptor says, which the peer may
    /// change, does not matter to this kind of read.
    pub fn drain(&self) {
        let mut count = [0; 8];
        let mut into = [IoSliceMut::new(&mut count)];
        // Nothing to read, most probably.
        let _ = rustix::io::preadv2(&self.0, &mut into, u64::MAX, ReadWriteFlags::NOWAIT);
    }

    /// Whether somebody wants to wake this end.
    #[must_use]
    pub fn is_signalled(&self) -> bool {
        let mut poll = [PollFd::new(&self.0, PollFlags::IN)];
        rustix::event::poll(&mut poll, Some(&rustix::event::Timespec::default())).is_ok_and(|n| n > 0)
    }

    /// As a descriptor.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Its number.
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Wakes a peer by an eventfd that the peer has, too, and never waits for it.
#[derive(Debug)]
pub struct Doorbell {
    event: EventFd,
    signal: Signal,
}

impl Doorbell {
    /// What wakes the thread that waits at `event`.
    ///
    /// # Errors
    /// The kernel offers no way that is sure not to wait.
    pub fn new(event: EventFd) -> Result<Self, EventError> {
        Ok(Doorbell { event, signal: Signal::new().map_err(EventError::NoSignal)? })
    }

    /// Wakes the other end; tells whether it could. An eventfd that is full means that the other end is awake long since.
    #[cold]
    pub fn ring(&self) -> bool {
        self.signal.send(self.event.as_fd()).is_ok()
    }

    /// The eventfd.
    #[must_use]
    pub fn event(&self) -> &EventFd {
        &self.event
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::OFlags;

    fn doorbell() -> Doorbell {
        Doorbell::new(EventFd::create().unwrap()).unwrap()
    }

    #[test]
    fn a_ring_is_seen_until_it_is_drained() {
        let bell = doorbell();
        assert!(!bell.event().is_signalled());
        bell.event().drain();
        assert!(bell.ring() && bell.ring());
        assert!(bell.event().is_signalled());
        bell.event().drain();
        assert!(!bell.event().is_signalled());
    }

    #[test]
    fn a_peer_that_makes_it_full_and_blocking_stops_no_thread() {
        let theirs = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let bell = Doorbell::new(EventFd::of_peer(theirs.try_clone().unwrap()).unwrap()).unwrap();
        rustix::fs::fcntl_setfl(&theirs, OFlags::empty()).unwrap();
        bell.event().drain();
        rustix::io::write(&theirs, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        assert!(bell.ring());
        bell.event().drain();
        bell.event().drain();
        assert!(!bell.event().is_signalled());
    }

    #[test]
    fn other_descriptors_are_refused() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        for fd in [read, write, std::fs::File::open("/dev/null").unwrap().into()] {
            assert!(matches!(EventFd::of_peer(fd), Err(EventError::NoEventFd)));
        }
    }
}
