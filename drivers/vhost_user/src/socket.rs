//! Sockets of the control channel: listening, connecting, and messages with descriptors.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Weak;
use std::task::{Context, Poll};

use async_io::Async;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType,
};

use crate::Error;
use crate::proto::{HEADER_BYTES, Header, Malformed};
use crate::sys::MOST_REGIONS;

/// Peers that wait to be taken.
const BACKLOG: i32 = 4;
/// Most bytes of a path.
const MOST_NAME: usize = 107;

/// The path of a socket that an operator has written: a name without a slash lies in the runtime directory.
///
/// # Errors
/// It is no name of a socket.
pub fn path_of(name: &str, runtime_dir: &Path) -> Result<PathBuf, Error> {
    let wrong = |rule| Err(Error::FileName { name: name.to_owned(), rule });
    if name.is_empty() || name.contains('\0') {
        return wrong("a path has at least one byte");
    }
    // An absolute path takes the place of the directory.
    let path = runtime_dir.join(name);
    if path.as_os_str().len() > MOST_NAME {
        return wrong("a path has at most 107 bytes");
    }
    Ok(path)
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// The socket's file; removed when this is dropped, unless somebody has put another in its place.
#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Drop for File {
    fn drop(&mut self) {
        let ours = |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A socket that a hypervisor connects to.
#[derive(Debug)]
pub struct Listener {
    socket: Async<OwnedFd>,
    _file: File,
}

impl Listener {
    /// Listens. A file is for its owner and group only, and replaces one that nobody listens on any more.
    ///
    /// # Errors
    /// It is taken, or the system refuses.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Os { what: path.display().to_string(), source };
        check_stale(path)?;
        // Made under another name and moved into place: it has its permissions before anybody can find it.
        let mut young = path.as_os_str().to_owned();
        young.push(format!(".{}", std::process::id()));
        let young = PathBuf::from(young);
        let _ = std::fs::remove_file(&young);
        let made = (|| {
            let socket = listen(&young)?;
            std::fs::set_permissions(&young, PermissionsExt::from_mode(0o660))?;
            let meta = std::fs::symlink_metadata(&young)?;
            std::fs::rename(&young, path)?;
            let file = File { path: path.to_owned(), identity: (meta.dev(), meta.ino()) };
            Ok(Listener { socket, _file: file })
        })();
        made.map_err(|error| {
            let _ = std::fs::remove_file(&young);
            failed(error)
        })
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Link>> {
        loop {
            match rustix::net::accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => return Poll::Ready(Link::of(fd)),
                Err(e) if e == rustix::io::Errno::AGAIN => match self.socket.poll_readable(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Pending => return Poll::Pending,
                },
                Err(e) if e == rustix::io::Errno::INTR || e == rustix::io::Errno::CONNABORTED => {}
                Err(e) => return Poll::Ready(Err(e.into())),
            }
        }
    }

    /// The next hypervisor, as long as somebody else keeps the listener: whoever waits does not, so that it closes as soon as
    /// it is not wanted any more.
    ///
    /// # Errors
    /// The system refuses: too many open files, most likely.
    pub async fn accept(listener: &Weak<Listener>) -> Option<io::Result<Link>> {
        poll_fn(|cx| match listener.upgrade() {
            Some(listener) => listener.poll_accept(cx).map(Some),
            None => Poll::Ready(None),
        })
        .await
    }
}

fn listen(path: &Path) -> io::Result<Async<OwnedFd>> {
    let socket = new_socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Async::new_nonblocking(socket)
}

fn check_stale(path: &Path) -> Result<(), Error> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let name = path.display().to_string();
    if !meta.file_type().is_socket() {
        return Err(Error::NotASocket(name));
    }
    match Link::connect(path) {
        Ok(_) => Err(Error::InUse(name)),
        Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        // Of another kind, or of somebody who is busy.
        Err(source) => Err(Error::Os { what: name, source }),
    }
}

/// Why nothing more comes from a peer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It has ended the connection, or itself.
    #[error("the peer has closed the connection")]
    Closed,
    /// It sent something that is no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A message with more than eight descriptors.
    #[error("message with more than 8 descriptors")]
    TooManyFds,
    /// The system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A message as it came: its body's first `header.size` bytes count.
#[derive(Debug)]
pub struct Word {
    /// What it is.
    pub header: Header,
    /// Its body.
    pub body: Vec<u8>,
    /// The descriptors that came with it.
    pub fds: Vec<OwnedFd>,
}

/// A connection with a peer.
#[derive(Debug)]
pub struct Link(Async<OwnedFd>);

impl Link {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        Ok(Link(Async::new_nonblocking(fd)?))
    }

    /// Connects, now or not at all.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let socket = new_socket()?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Link::of(socket)
    }

    /// Sends an answer.
    ///
    /// # Errors
    /// The peer is gone.
    pub async fn send(&self, mut bytes: &[u8]) -> Result<(), LinkError> {
        while !bytes.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(self.0.get_ref(), bytes, flags).map_err(io::Error::from) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.0.writable().await?,
                Err(e) => quiet(e)?,
            }
        }
        Ok(())
    }

    /// The next message.
    ///
    /// # Errors
    /// There is none any more, or it is none.
    pub async fn receive(&self) -> Result<Word, LinkError> {
        let (mut head, mut fds) = ([0; HEADER_BYTES], Vec::new());
        self.fill(&mut head, &mut fds).await?;
        let header = Header::decode(head)?;
        let mut body = vec![0; header.size];
        self.fill(&mut body, &mut fds).await?;
        Ok(Word { header, body, fds })
    }

    /// Reads so many bytes. All descriptors that come are taken over, so that what is not wanted is closed.
    async fn fill(&self, mut to: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<(), LinkError> {
        while !to.is_empty() {
            match self.try_receive(to, fds) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(got) => to = to.get_mut(got..).unwrap_or_default(),
                Err(LinkError::Io(e)) if e.kind() == ErrorKind::WouldBlock => self.0.readable().await?,
                Err(LinkError::Io(e)) => quiet(e)?,
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn try_receive(&self, to: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<usize, LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_REGIONS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = rustix::net::recvmsg(self.0.get_ref(), &mut [IoSliceMut::new(to)], &mut ancillary, flags)
            .map_err(io::Error::from)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if fds.len() > MOST_REGIONS || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(LinkError::TooManyFds);
        }
        Ok(got.bytes)
    }
}

/// Errors that are no reason to stop, or the peer's end.
fn quiet(error: io::Error) -> Result<(), LinkError> {
    match error.kind() {
        ErrorKind::Interrupted => Ok(()),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Err(LinkError::Closed),
        _ => Err(error.into()),
    }
}
