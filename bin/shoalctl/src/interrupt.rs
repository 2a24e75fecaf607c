//! Ctrl-C while a command runs: it interrupts the command, not the session.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// While this exists, Ctrl-C is noted here and does not end the process.
pub struct Interrupt {
    signals: SignalFd,
    set: SigSet,
}

impl Interrupt {
    /// Starts to catch Ctrl-C.
    pub fn new() -> io::Result<Self> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        set.thread_block()?;
        Ok(Self { signals, set })
    }

    /// Waits for input on `fd` or for Ctrl-C; true if it was Ctrl-C.
    pub fn wait(&self, fd: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            let mut fds =
                [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN), PollFd::new(fd, PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if self.pressed() {
                return Ok(true);
            }
            if fds.iter().skip(1).any(|p| p.any().unwrap_or(true)) {
                return Ok(false);
            }
        }
    }

    fn pressed(&self) -> bool {
        self.signals.read_signal().is_ok_and(|signal| signal.is_some())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // One pressed too late for the command must not end the session now.
        while self.pressed() {}
        let _ = self.set.thread_unblock();
    }
}
