//! Making the socket's file.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use async_io::Async;

use super::Settings;

/// A socket that listens.
pub struct Listener {
    pub(super) socket: Async<UnixListener>,
    pub(super) settings: Settings,
    /// Device and inode of our file, to remove no other's.
    file: (u64, u64),
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

/// Makes the socket, for its owner and group only. A file that nobody listens on any more is replaced.
pub fn listen(settings: Settings) -> Result<Listener, ListenError> {
    let path = settings.path.clone();
    let failed = |what, source| ListenError::System { path: path.clone(), what, source };
    check_stale(&path)?;
    // Made under another name and moved into place, so that nobody can connect before the file has its
    // permissions, and the old file is replaced in one step.
    let mut name = path.clone().into_os_string();
    name.push(format!(".{}", std::process::id()));
    let young = PathBuf::from(name);
    let _ = std::fs::remove_file(&young);
    let socket = UnixListener::bind(&young).map_err(|e| failed("cannot bind", e))?;
    let result = finish(&young, &path, settings.gid).and_then(|file| Ok((Async::new(socket)?, file)));
    match result {
        Ok((socket, file)) => Ok(Listener { socket, settings, file }),
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

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == self.file;
        if std::fs::symlink_metadata(&self.settings.path).is_ok_and(ours) {
            let _ = std::fs::remove_file(&self.settings.path);
        }
    }
}
