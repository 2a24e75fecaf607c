//! A listening socket's file.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A socket's file; removed when this is dropped, unless somebody has put another in its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

/// The socket's file cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Another process listens there.
    #[error(
        "{0}: another process serves this socket; `unix {{ runtime-dir DIR }}' gives a second router sockets of its own"
    )]
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

impl SocketFile {
    /// Makes the socket at `path` for its owner and group only. A file without a listener is replaced.
    ///
    /// `probe` connects to a path, `bind` makes the socket at one and listens.
    ///
    /// # Errors
    /// The path is taken, or the system refuses.
    pub fn place<L>(
        path: &Path,
        gid: Option<u32>,
        probe: impl FnOnce(&Path) -> io::Result<()>,
        bind: impl FnOnce(&Path) -> io::Result<L>,
    ) -> Result<(L, SocketFile), FileError> {
        let failed = |what, source| FileError::System { path: path.to_owned(), what, source };
        check_stale(path, probe)?;
        // Made under another name and moved into place, so that no client can connect before the file has its
        // permissions, and the old file is replaced in one step.
        let mut young = path.as_os_str().to_owned();
        young.push(format!(".{}", std::process::id()));
        let young = PathBuf::from(young);
        let _ = std::fs::remove_file(&young);
        let socket = bind(&young).map_err(|e| failed("cannot bind", e));
        let placed = socket.and_then(|socket| {
            let identity = finish(&young, path, gid).map_err(|e| failed("cannot set up", e))?;
            Ok((socket, SocketFile { path: path.to_owned(), identity }))
        });
        if placed.is_err() {
            let _ = std::fs::remove_file(&young);
        }
        placed
    }
}

fn finish(young: &Path, path: &Path, gid: Option<u32>) -> io::Result<(u64, u64)> {
    std::fs::set_permissions(young, PermissionsExt::from_mode(0o660))?;
    if gid.is_some() {
        chown(young, None, gid)?;
    }
    let meta = std::fs::symlink_metadata(young)?;
    std::fs::rename(young, path)?;
    Ok((meta.dev(), meta.ino()))
}

fn check_stale(path: &Path, probe: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), FileError> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(FileError::NotASocket(path.to_owned()));
    }
    match probe(path) {
        Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        // It has more clients waiting than it takes.
        Err(e) if e.kind() == ErrorKind::WouldBlock => Err(FileError::InUse(path.to_owned())),
        Ok(()) => Err(FileError::InUse(path.to_owned())),
        Err(source) => Err(FileError::System { path: path.to_owned(), what: "is it in use?", source }),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn place(path: &Path) -> Result<(UnixListener, SocketFile), FileError> {
        SocketFile::place(
            path,
            None,
            |path| UnixStream::connect(path).map(drop),
            |path| UnixListener::bind(path),
        )
    }

    #[test]
    fn a_file_is_private_and_goes_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let (_socket, file) = place(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        assert!(matches!(place(&path), Err(FileError::InUse(_))), "somebody listens");
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_dead_file_is_replaced_and_anothers_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        let (_socket, file) = place(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert!(matches!(place(&path), Err(FileError::NotASocket(_))));
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let error = place(&dir.path().join("no/such/a.sock")).unwrap_err();
        assert!(error.to_string().contains("cannot bind"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
