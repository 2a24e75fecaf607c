//! Listening: making the socket's file, or taking the port.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use async_io::Async;
use shoal_module::door::{FileError, SocketFile};

use super::stream::Stream;
use super::{Address, Settings};

/// A socket that listens.
pub struct Listener {
    socket: Socket,
    pub(super) settings: Settings,
}

enum Socket {
    Unix { socket: Async<UnixListener>, _file: SocketFile },
    Tcp(Async<TcpListener>),
}

impl Listener {
    /// Waits for a client.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Unix { socket, .. } => Ok(Stream::Unix(socket.accept().await?.0)),
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                // Answers are short and asked for one by one.
                stream.get_ref().set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// The port's address, for a server that was told to take any free port.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Unix { .. } => None,
            Socket::Tcp(socket) => socket.get_ref().local_addr().ok(),
        }
    }
}

/// The socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The socket's file cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// The port cannot be had.
    #[error("{0}: cannot listen: {1}; `unix {{ cli-listen ADDRESS }}' names another place")]
    Port(SocketAddr, io::Error),
}

/// Makes the socket, for its owner and group only, or takes the port. A file without a listener is replaced.
pub fn listen(settings: Settings) -> Result<Listener, ListenError> {
    let socket = match &settings.address {
        Address::Path(path) => listen_at(path, settings.gid)?,
        Address::Tcp(address) => {
            let socket = TcpListener::bind(address).and_then(Async::new);
            Socket::Tcp(socket.map_err(|e| ListenError::Port(*address, e))?)
        }
    };
    Ok(Listener { socket, settings })
}

fn listen_at(path: &Path, gid: Option<u32>) -> Result<Socket, FileError> {
    let probe = |path: &Path| UnixStream::connect(path).map(drop);
    let (socket, file) = SocketFile::place(path, gid, probe, |path| Async::<UnixListener>::bind(path))?;
    Ok(Socket::Unix { socket, _file: file })
}
