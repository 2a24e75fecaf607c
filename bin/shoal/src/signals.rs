//! Signals, read as messages by a task.

use std::io;

use async_io::Async;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

fn ours() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

/// Keeps the signals from interrupting the calling thread and those it starts.
pub fn block() -> io::Result<()> {
    Ok(ours().thread_block()?)
}

/// The signals that were sent to the process.
pub struct Signals(Async<SignalFd>);

impl Signals {
    /// From now on; [`block`] must have been called.
    pub fn new() -> io::Result<Self> {
        let fd = SignalFd::with_flags(&ours(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals(Async::new(fd)?))
    }

    /// Waits for the next one.
    pub async fn next(&self) -> io::Result<Signal> {
        let info = self.0.read_with(|fd| fd.read_signal()?.ok_or(io::ErrorKind::WouldBlock.into())).await?;
        Ok(Signal::try_from(info.ssi_signo as i32)?)
    }
}
