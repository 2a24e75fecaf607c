//! Where clients connect: a file, or a name without one.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use async_io::Async;
use shoal_module::door::{FileError, SocketFile};

/// The socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The socket's file cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// A namespace was named.
    #[error("{0}: a socket in another network namespace is not offered: start the router in it")]
    Namespace(String),
    /// The system refused a socket without a file.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

/// A socket, and its file if it has one.
pub type Listening = (Async<UnixListener>, Option<SocketFile>);

/// Listens at `address`: a path, `unix:PATH` or `abstract:NAME`. A file is for its owner and group only, and replaces
/// one without a listener.
///
/// # Errors
/// It is taken, or the system refuses.
pub fn listen(address: &Path, gid: Option<u32>) -> Result<Listening, ListenError> {
    let text = address.to_string_lossy();
    let failed = |error| ListenError::System(text.to_string(), error);
    if let Some(name) = text.strip_prefix("abstract:") {
        if name.contains(",netns_") {
            return Err(ListenError::Namespace(text.to_string()));
        }
        let address = SocketAddr::from_abstract_name(name).map_err(failed)?;
        let socket = UnixListener::bind_addr(&address).and_then(Async::new).map_err(failed)?;
        return Ok((socket, None));
    }
    let path = PathBuf::from(text.strip_prefix("unix:").unwrap_or(&text));
    let probe = |path: &Path| UnixStream::connect(path).map(drop);
    let (socket, file) = SocketFile::place(&path, gid, probe, |path| Async::<UnixListener>::bind(path))?;
    Ok((socket, Some(file)))
}
