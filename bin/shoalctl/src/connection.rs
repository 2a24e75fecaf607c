//! A connection to the router's command line, by a socket file or by TCP.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A stream of either kind.
pub enum Connection {
    /// A socket file.
    Unix(UnixStream),
    /// `cli-listen HOST:PORT`.
    Tcp(TcpStream),
}

impl Connection {
    /// Connects to a socket file, or to `HOST:PORT`, as `cli-listen` takes them.
    pub fn open(path: &Path) -> io::Result<Self> {
        match host_and_port(path) {
            Some(address) => TcpStream::connect(address).map(Connection::Tcp),
            None => UnixStream::connect(path).map(Connection::Unix),
        }
    }

    /// How long a read waits; `None`: for ever.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Connection::Unix(stream) => stream.set_read_timeout(timeout),
            Connection::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }
}

/// The text of a path that is `HOST:PORT` and no file.
pub fn host_and_port(path: &Path) -> Option<&str> {
    let text = path.to_str().filter(|text| !text.contains('/'))?;
    let (host, port) = text.rsplit_once(':')?;
    (!host.is_empty() && port.parse::<u16>().is_ok() && !path.exists()).then_some(text)
}

impl Read for Connection {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Unix(stream) => stream.read(buf),
            Connection::Tcp(stream) => stream.read(buf),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Connection::Unix(stream) => stream.write(buf),
            Connection::Tcp(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Connection::Unix(stream) => stream.as_fd(),
            Connection::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_and_ends_in_a_port_is_reached_by_tcp() {
        let of = |text: &'static str| host_and_port(Path::new(text));
        for text in ["127.0.0.1:5002", "localhost:5002", "[::1]:5002"] {
            assert_eq!(of(text), Some(text));
        }
        for text in ["/run/shoal/cli.sock", "./a:5002", "cli.sock", "host:port", ":5002", "host:70000"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
