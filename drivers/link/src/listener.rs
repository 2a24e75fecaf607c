//! Waiting for peers of a local socket.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::rc::Weak;
use std::task::{Context, Poll};

use async_io::Async;
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags};
use shoal_module::door::SocketFile;

use crate::{PeerFd, check_closing};

/// A socket that peers connect to, and its file if it has one, which goes with it.
#[derive(Debug)]
pub struct Listener {
    /// There until it is dropped.
    socket: Option<Async<PeerFd>>,
    _file: Option<SocketFile>,
}

impl Listener {
    /// Of a socket that listens and does not block.
    ///
    /// # Errors
    /// The system does not watch it.
    pub fn new(socket: OwnedFd, file: Option<SocketFile>) -> io::Result<Self> {
        Ok(Listener { socket: Some(Async::new_nonblocking(socket.into())?), _file: file })
    }

    fn socket(&self) -> &Async<PeerFd> {
        self.socket.as_ref().unwrap_or_else(|| unreachable!("it is there until it is dropped"))
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<PeerFd>> {
        check_closing()?;
        let socket = self.socket();
        loop {
            match rustix::net::accept_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => return Poll::Ready(Ok(fd.into())),
                Err(Errno::AGAIN) => match socket.poll_readable(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Pending => return Poll::Pending,
                },
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(e) => return Poll::Ready(Err(e.into())),
            }
        }
    }

    /// The next peer, as long as another owner keeps the listener: the waiting task does not, so that it closes as soon
    /// as it is not wanted any more.
    ///
    /// # Errors
    /// The system refuses: too many open files, most likely. Or peers have sent what cannot be closed.
    pub async fn accept(listener: &Weak<Listener>) -> Option<io::Result<PeerFd>> {
        poll_fn(|cx| match listener.upgrade() {
            Some(listener) => listener.poll_accept(cx).map(Some),
            None => Poll::Ready(None),
        })
        .await
    }

    /// The descriptor's number, for display.
    #[must_use]
    pub fn number(&self) -> RawFd {
        self.socket().get_ref().as_fd().as_raw_fd()
    }
}

impl Drop for Listener {
    /// Closes it now, so that the next one can have its name; but peers that were not taken, and what they have sent, aside.
    fn drop(&mut self) {
        let Some(socket) = self.socket.take().and_then(|socket| socket.into_inner().ok()) else { return };
        // No more peers come.
        let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        loop {
            match rustix::net::accept_with(&socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => drop(PeerFd::from(fd)),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Too many open files: the rest goes with the socket.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return,
                Err(_) => break,
            }
        }
        drop(socket.into_known());
    }
}
