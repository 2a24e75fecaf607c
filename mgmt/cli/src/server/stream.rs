//! A client's connection: of a UNIX socket or of TCP.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use async_io::Async;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::{Uid, User, geteuid};

use super::session_table::SessionOwner;

/// A connection.
pub enum Stream {
    /// Of a UNIX socket.
    Unix(Async<UnixStream>),
    /// Of a TCP port.
    Tcp(Async<TcpStream>),
}

impl Stream {
    pub async fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => { stream }.read(to).await,
            Stream::Tcp(stream) => { stream }.read(to).await,
        }
    }

    pub async fn write(&self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => { stream }.write(from).await,
            Stream::Tcp(stream) => { stream }.write(from).await,
        }
    }

    /// Writes what fits without waiting.
    pub fn write_now(&self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => io::Write::write(&mut stream.get_ref(), from),
            Stream::Tcp(stream) => io::Write::write(&mut stream.get_ref(), from),
        }
    }

    /// Whose the connection is: that of the router's own user, or of root, by what the system says of its other end.
    pub fn whose(&self) -> SessionOwner {
        let Stream::Unix(stream) = self else { return SessionOwner::Other };
        match getsockopt(stream.get_ref(), PeerCredentials) {
            Ok(peer) if peer.uid() == 0 || peer.uid() == geteuid().as_raw() => SessionOwner::Owner,
            _ => SessionOwner::Other,
        }
    }

    /// The user at the other end, as the system knows it, or where that is.
    pub fn user(&self) -> String {
        let Stream::Unix(stream) = self else { return self.peer() };
        let Ok(peer) = getsockopt(stream.get_ref(), PeerCredentials) else { return self.peer() };
        let named = User::from_uid(Uid::from_raw(peer.uid())).ok().flatten();
        named.map_or_else(|| format!("uid {}", peer.uid()), |user| user.name)
    }

    /// Its file descriptor's number.
    pub fn number(&self) -> i32 {
        match self {
            Stream::Unix(stream) => stream.as_raw_fd(),
            Stream::Tcp(stream) => stream.as_raw_fd(),
        }
    }

    /// The other end, in words: its address, or that it is on this machine.
    pub fn peer(&self) -> String {
        match self {
            Stream::Unix(_) => "local".to_owned(),
            Stream::Tcp(stream) => {
                let address = stream.get_ref().peer_addr();
                address.map_or_else(|_| "gone".to_owned(), |address| address.to_string())
            }
        }
    }

    /// Whether a web page could have made the connection: browsers connect to TCP ports, not to UNIX sockets.
    pub fn is_tcp(&self) -> bool {
        matches!(self, Stream::Tcp(_))
    }
}
