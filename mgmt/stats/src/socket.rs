//! The socket that gives clients the segment: they connect, get one descriptor, and that is all.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_io::{Async, Timer};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, bind, connect, listen,
    sendmsg, socket,
};
use shoal_infra::SharedSegment;

/// Clients that may wait to be served, as in VPP.
const BACKLOG: i32 = 5;

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
    #[error("{path}: {source}")]
    System {
        /// The socket's file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
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

/// From now on nobody can open or map the segment for writing; what is mapped already stays as it is. The
/// permissions of a memfd would let every client open it again for writing.
///
/// Tells whether the kernel can do that; it can since Linux 5.1.
pub fn seal(segment: &SharedSegment) -> bool {
    // F_SEAL_FUTURE_WRITE, which nix does not name.
    let seal = SealFlag::from_bits_retain(0x10);
    fcntl(segment.fd(), FcntlArg::F_ADD_SEALS(seal)).is_ok()
}

/// Makes the socket, for its owner and group only. A file that nobody listens on any more is replaced.
pub fn open(path: &Path, gid: Option<u32>) -> Result<(Async<UnixListener>, SocketFile), ListenError> {
    check_stale(path)?;
    // Made under another name and moved into place: it has its permissions before anybody can find it.
    let mut young = path.as_os_str().to_owned();
    young.push(format!(".{}", std::process::id()));
    let young = PathBuf::from(young);
    let _ = std::fs::remove_file(&young);
    listen_at(&young, path, gid).map_err(|source| {
        let _ = std::fs::remove_file(&young);
        ListenError::System { path: path.to_owned(), source }
    })
}

fn listen_at(young: &Path, path: &Path, gid: Option<u32>) -> io::Result<(Async<UnixListener>, SocketFile)> {
    let fd = seqpacket()?;
    bind(fd.as_raw_fd(), &UnixAddr::new(young)?)?;
    std::fs::set_permissions(young, PermissionsExt::from_mode(0o660))?;
    if gid.is_some() {
        chown(young, None, gid)?;
    }
    listen(&fd, Backlog::new(BACKLOG)?)?;
    // The standard library knows stream sockets only, but accepting is the same.
    let listener = Async::new(UnixListener::from(fd))?;
    let meta = std::fs::symlink_metadata(young)?;
    std::fs::rename(young, path)?;
    Ok((listener, SocketFile { path: path.to_owned(), identity: (meta.dev(), meta.ino()) }))
}

fn seqpacket() -> io::Result<std::os::fd::OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

fn check_stale(path: &Path) -> Result<(), ListenError> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    let attempt = seqpacket().and_then(|fd| Ok(connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?));
    match attempt.map_err(|e| e.kind()) {
        Err(ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        Ok(()) | Err(ErrorKind::WouldBlock) => Err(ListenError::InUse(path.to_owned())),
        Err(kind) => Err(ListenError::System { path: path.to_owned(), source: kind.into() }),
    }
}

/// Serves clients for ever.
pub async fn serve(listener: Async<UnixListener>, segment: SharedSegment) {
    loop {
        let result = listener.accept().await.and_then(|(client, _)| hand_over(client.get_ref(), &segment));
        match result {
            Ok(()) => {}
            // The client did not wait for its answer.
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            Err(error) => {
                // Out of file descriptors, most likely: trying at once again would spin.
                tracing::warn!(%error, "the stats socket cannot serve a client");
                Timer::after(Duration::from_millis(200)).await;
            }
        }
    }
}

/// One message without bytes and with the descriptor; a new client's buffer has room for it.
fn hand_over(client: &UnixStream, segment: &SharedSegment) -> io::Result<()> {
    let fd = segment.read_only_fd()?;
    let fds = [fd.as_fd().as_raw_fd()];
    sendmsg::<()>(client.as_raw_fd(), &[], &[ControlMessage::ScmRights(&fds)], MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}
