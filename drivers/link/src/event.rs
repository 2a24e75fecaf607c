//! Eventfds: how one end of a shared ring wakes the other, which may be a stranger's.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::{Errno, ReadWriteFlags};

/// An eventfd that a peer has, too. The peer may do to it whatever can be done to a descriptor.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

/// Why a peer's descriptor is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the interrupt's descriptor is no eventfd")]
pub struct NoEventFd;

impl EventFd {
    /// A new one.
    ///
    /// # Errors
    /// The system gives none.
    pub fn create() -> std::io::Result<Self> {
        Ok(EventFd(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// A peer's, which it has sent.
    ///
    /// # Errors
    /// It is something else, on which writing might take long.
    pub fn of_peer(fd: OwnedFd) -> Result<Self, NoEventFd> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        if !link.is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"anon_inode:[eventfd")) {
            return Err(NoEventFd);
        }
        let event = EventFd(fd);
        event.be_quick().map_err(|_| NoEventFd)?;
        Ok(event)
    }

    /// The same one once more.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(EventFd(self.0.try_clone()?))
    }

    /// Makes it non-blocking, unless it is: the peer could have changed that.
    fn be_quick(&self) -> Result<(), Errno> {
        let flags = rustix::fs::fcntl_getfl(&self.0)?;
        if flags.contains(OFlags::NONBLOCK) {
            return Ok(());
        }
        rustix::fs::fcntl_setfl(&self.0, flags | OFlags::NONBLOCK)
    }

    /// Wakes the other end. Full means that it is awake long since.
    pub fn kick(&self) {
        // A peer that makes it blocking and full would stop this thread. One that does so between these two calls still
        // can; that it is full is looked at, too, so it must do both in the same instant.
        let mut poll = [PollFd::new(&self.0, PollFlags::OUT)];
        let nothing = rustix::event::Timespec::default();
        let writable = rustix::event::poll(&mut poll, Some(&nothing)).is_ok_and(|n| n > 0);
        if writable && self.be_quick().is_ok() {
            let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
        }
    }

    /// Forgets that somebody wanted to wake this end.
    pub fn drain(&self) {
        let mut count = [0; 8];
        // Never waits, whatever the peer has made of the descriptor.
        let read = rustix::io::preadv2(
            &self.0,
            &mut [IoSliceMut::new(&mut count)],
            u64::MAX,
            ReadWriteFlags::NOWAIT,
        );
        if read == Err(Errno::OPNOTSUPP) && self.be_quick().is_ok() {
            let _ = rustix::io::read(&self.0, &mut count);
        }
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

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(event: &EventFd) -> bool {
        let mut poll = [PollFd::new(event, PollFlags::IN)];
        rustix::event::poll(&mut poll, Some(&rustix::event::Timespec::default())).unwrap() > 0
    }

    #[test]
    fn a_kick_is_seen_until_it_is_drained() {
        let event = EventFd::create().unwrap();
        assert!(!is_readable(&event));
        event.drain();
        event.kick();
        event.kick();
        assert!(is_readable(&event));
        event.drain();
        assert!(!is_readable(&event));
    }

    #[test]
    fn a_peer_that_makes_it_full_and_blocking_stops_nobody() {
        let theirs = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let ours = EventFd::of_peer(theirs.try_clone().unwrap()).unwrap();
        rustix::fs::fcntl_setfl(&theirs, OFlags::empty()).unwrap();
        ours.drain();
        rustix::io::write(&theirs, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        ours.kick();
        ours.drain();
        assert!(!is_readable(&ours));
    }

    #[test]
    fn other_descriptors_are_refused() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        for fd in [read, write, std::fs::File::open("/dev/null").unwrap().into()] {
            assert_eq!(EventFd::of_peer(fd).unwrap_err(), NoEventFd);
        }
    }
}
