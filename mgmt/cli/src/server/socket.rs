//! Listening: making the socket's file, or taking the port.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use async_io::Async;

use super::stream::Stream;
use super::{Address, Settings};

/// A socket that listens.
pub struct Listener {
    socket: Socket,
    pub(super) settings: Settings,
}

enum Socket {
    Unix { socket: Async<UnixListener>, _file: File },
    Tcp(Async<TcpListener>),
}

/// A socket's file. Goes with the listener, unless it has become another's.
struct File {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
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
    /// Another process listens there.
    #[error("{0}: another process serves this socket")]
    InUse(PathBuf),
    /// The path is taken by something else.
    #[error("{0}: exists and is not a socket")]
    NotASocket(PathBuf),
    /// The port cannot be had.
    #[error("{0}: cannot listen: {1}")]
    Port(SocketAddr, io::Error),
    /// The system refused.
    #[error("{path}: {what}: {source}")]
    System {
        /// The socket's file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// Makes the socket, for its owner and group only, or takes the port. A file that nobody listens on any more is
/// replaced.
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

fn listen_at(path: &Path, gid: Option<u32>) -> Result<Socket, ListenError> {
    let path = path.to_path_buf();
    let failed = |what, source| ListenError::System { path: path.clone(), what, source };
    check_stale(&path)?;
    // Made under another name and moved into place, so that nobody can connect before the file has its
    // permissions, and the old file is replaced in one step.
    let mut name = path.clone().into_os_string();
    name.push(format!(".{}", std::process::id()));
    let young = PathBuf::from(name);
    let _ = std::fs::remove_file(&young);
    let socket = UnixListener::bind(&young).map_err(|e| failed("cannot bind", e))?;
    let result = finish(&young, &path, gid).and_then(|file| Ok((Async::new(socket)?, file)));
    match result {
        Ok((socket, id)) => Ok(Socket::Unix { socket, _file: File { path, id } }),
        Err(error) => {
            let _ = std::fs::remove_file(&young);
            Err(failed("cannot set up", error))
        }
    }
}

fn finish(young: &PathBuf, path: &PathBuf, gid: Option<u32>) -> io::Result<(u64, u64)> {
    std::fs::set_permissions(young, PermissionsExt::from_mode(0o660))?;
    if gid.is_some() {
        chown(young, None, gid)?;
    }
    let meta = std::fs::symlink_metadata(young)?;
    std::fs::rename(young, path)?;
    Ok((meta.dev(), meta.ino()))
}

fn check_stale(path: &PathBuf) -> Result<(), ListenError> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.clone()));
    }
    match UnixStream::connect(path) {
        Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        Ok(_) => Err(ListenError::InUse(path.clone())),
        Err(source) => Err(ListenError::System { path: path.clone(), what: "is it in use?", source }),
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let ours = |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == self.id;
        if std::fs::symlink_metadata(&self.path).is_ok_and(ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
