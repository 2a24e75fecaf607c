//! Where clients connect: a file, or a name without one.

use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use async_io::Async;

/// The socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens there.
    #[error("{0}: another process serves this socket")]
    InUse(String),
    /// The path is taken by something else.
    #[error("{0}: exists and is not a socket")]
    NotASocket(String),
    /// A namespace was named.
    #[error("{0}: a socket in another network namespace is not offered: start the router in it")]
    Namespace(String),
    /// The system refused.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

/// The socket's file; removed when this is dropped, unless somebody has put another in its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A socket, and its file if it has one.
pub type Listening = (Async<UnixListener>, Option<SocketFile>);

/// Listens at `address`: a path, `unix:PATH` or `abstract:NAME`. A file is for its owner and group only, and replaces one
/// that nobody listens on any more.
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
    check_stale(&path, &text)?;
    // Made under another name and moved into place: it has its permissions before anybody can find it.
    let mut young = path.clone().into_os_string();
    young.push(format!(".{}", std::process::id()));
    let young = PathBuf::from(young);
    let _ = std::fs::remove_file(&young);
    listen_at(&young, path, gid).map_err(|error| {
        let _ = std::fs::remove_file(&young);
        failed(error)
    })
}

fn listen_at(young: &Path, path: PathBuf, gid: Option<u32>) -> io::Result<Listening> {
    let socket = UnixListener::bind(young)?;
    std::fs::set_permissions(young, PermissionsExt::from_mode(0o660))?;
    if gid.is_some() {
        chown(young, None, gid)?;
    }
    let meta = std::fs::symlink_metadata(young)?;
    let socket = Async::new(socket)?;
    std::fs::rename(young, &path)?;
    Ok((socket, Some(SocketFile { path, identity: (meta.dev(), meta.ino()) })))
}

fn check_stale(path: &Path, text: &str) -> Result<(), ListenError> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(ListenError::NotASocket(text.to_owned()));
    }
    match UnixStream::connect(path).map_err(|e| (e.kind(), e)) {
        Err((ErrorKind::ConnectionRefused | ErrorKind::NotFound, _)) => Ok(()),
        Ok(_) => Err(ListenError::InUse(text.to_owned())),
        Err((_, error)) => Err(ListenError::System(text.to_owned(), error)),
    }
}
