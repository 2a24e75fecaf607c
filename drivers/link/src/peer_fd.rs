//! Descriptors whose end is in a stranger's hand, and how they are closed.
//!
//! close(2) can take as long as the file's maker wants: a TCP socket lingers (`SO_LINGER`) while its other end does not
//! read, the server of a FUSE file system answers when it likes. A peer can send such a descriptor with a message, and
//! a socket that is closed with messages in its queue closes what came with them. So all of these are closed by a
//! thread that is never waited for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads that close at the same time. More are of use only to a peer that wants to hold them up.
const MOST_THREADS: usize = 32;
/// Descriptors that wait to be closed, before peers that come are refused.
const MOST_WAITING: usize = 256;

/// What waits to be closed.
struct Closing {
    waiting: Vec<OwnedFd>,
    threads: usize,
    /// Threads that are closing something now, which may take them long.
    busy: usize,
}

static CLOSING: Mutex<Closing> = Mutex::new(Closing { waiting: Vec::new(), threads: 0, busy: 0 });

fn closing() -> MutexGuard<'static, Closing> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A descriptor that came from a peer, or a socket that a peer sends descriptors to. Dropping it takes no time.
#[derive(Debug)]
pub struct PeerFd(Option<OwnedFd>);

impl From<OwnedFd> for PeerFd {
    fn from(fd: OwnedFd) -> Self {
        PeerFd(Some(fd))
    }
}

impl PeerFd {
    /// The descriptor, of which is known now that it is closed in no time.
    pub(crate) fn into_known(mut self) -> OwnedFd {
        self.0.take().unwrap_or_else(|| unreachable!("it is taken here and in `drop` only"))
    }
}

impl AsFd for PeerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().map_or_else(|| unreachable!("it is there until it is dropped"), OwnedFd::as_fd)
    }
}

impl Drop for PeerFd {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            close_aside(fd);
        }
    }
}

fn close_aside(fd: OwnedFd) {
    let mut closing = closing();
    closing.waiting.push(fd);
    if closing.threads < MOST_THREADS && closing.threads - closing.busy < closing.waiting.len() {
        // Without a thread it waits for the next one.
        let thread = std::thread::Builder::new().name("shoal-close".into()).stack_size(64 << 10);
        closing.threads += usize::from(thread.spawn(close_all).is_ok());
    }
}

/// Closes until nothing waits.
fn close_all() {
    loop {
        let mut closing = closing();
        let Some(fd) = closing.waiting.pop() else {
            closing.threads -= 1;
            return;
        };
        closing.busy += 1;
        // Closing waits for others, who may have something to close.
        drop(closing);
        drop(fd);
        self::closing().busy -= 1;
    }
}

/// Whether one more peer can be taken.
///
/// # Errors
/// Peers have sent so many descriptors that cannot be closed that no more are taken.
pub fn check_closing() -> io::Result<()> {
    match closing().waiting.len() {
        0..MOST_WAITING => Ok(()),
        n => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("{n} descriptors of peers wait to be closed"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// A socket that takes a minute to close.
    fn lingering() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        while near.write(&[0; 8192]).is_ok() {}
        near.set_nonblocking(false).unwrap();
        rustix::net::sockopt::set_socket_linger(&near, Some(Duration::from_mins(1))).unwrap();
        (near.into(), far)
    }

    #[test]
    fn a_socket_that_lingers_is_closed_by_somebody_else() {
        let before = Instant::now();
        let (fd, far) = lingering();
        drop(PeerFd::from(fd));
        // A thread has it in hand.
        while closing().busy == 0 {
            std::thread::yield_now();
        }
        // One after it is closed meanwhile.
        let (read, write) = rustix::pipe::pipe().unwrap();
        drop(PeerFd::from(write));
        assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0), "the other end of the pipe is closed");
        assert!(before.elapsed() < Duration::from_secs(50), "{:?}", before.elapsed());
        check_closing().unwrap();
        drop(far);
    }
}
