//! The socket that gives clients the segment: they connect, get one descriptor, and that is all.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use async_io::{Async, Timer};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, bind, connect, listen,
    sendmsg, socket,
};
use shoal_infra::SharedSegment;
use shoal_module::door::{FileError, SocketFile};

/// Clients that may wait to be served, as in VPP.
const BACKLOG: i32 = 5;

/// From now on no process can open or map the segment for writing; what is mapped already stays as it is. The
/// permissions of a memfd would let every client open it again for writing.
///
/// Tells whether the kernel can do that; it can since Linux 5.1.
pub fn seal(segment: &SharedSegment) -> bool {
    // F_SEAL_FUTURE_WRITE, which nix does not name.
    let seal = SealFlag::from_bits_retain(0x10);
    fcntl(segment.fd(), FcntlArg::F_ADD_SEALS(seal)).is_ok()
}

/// Makes the socket, for its owner and group only. A file without a listener is replaced.
pub fn open(path: &Path, gid: Option<u32>) -> Result<(Async<UnixListener>, SocketFile), FileError> {
    let probe = |path: &Path| Ok(connect(seqpacket()?.as_raw_fd(), &UnixAddr::new(path)?)?);
    SocketFile::place(path, gid, probe, |path| {
        let fd = seqpacket()?;
        bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
        listen(&fd, Backlog::new(BACKLOG)?)?;
        // The standard library knows stream sockets only, but accepting is the same.
        Async::new(UnixListener::from(fd))
    })
}

fn seqpacket() -> io::Result<std::os::fd::OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
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
