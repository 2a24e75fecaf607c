//! A client's connection: of a UNIX socket or of TCP.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use async_io::Async;
use futures_lite::{AsyncReadExt, AsyncWriteExt};

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

    /// Whether a web page could have made the connection: browsers connect to TCP ports, not to UNIX sockets.
    pub fn is_tcp(&self) -> bool {
        matches!(self, Stream::Tcp(_))
    }
}
