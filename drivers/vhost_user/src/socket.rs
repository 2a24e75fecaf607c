//! Sockets of the control channel: listening, connecting, and messages with descriptors.

use std::io::{self, ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use async_io::Async;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType,
};
use shoal_link::{Listener, PeerFd, check_closing};
use shoal_module::door::{FileError, SocketFile};

use crate::Error;
use crate::memory::MOST_REGIONS;
use crate::proto::{HEADER_BYTES, Header, Malformed};

/// Peers that wait to be taken.
const BACKLOG: i32 = 4;
/// Descriptors that the kernel lets through with a message (`SCM_MAX_FD`): those for which there were no room it would close
/// itself, on this thread.
const MOST_FDS: usize = 253;
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

/// Listens where a hypervisor connects. The file is for its owner and group only, and replaces one without a listener.
///
/// # Errors
/// It is taken, or the system refuses.
pub fn listen(path: &Path) -> Result<Listener, Error> {
    let probe = |path: &Path| Link::connect(path).map(drop);
    let (socket, file) = SocketFile::place(path, None, probe, bind)?;
    let failed = |source| FileError::System { path: path.to_owned(), what: "cannot watch", source };
    Ok(Listener::new(socket, Some(file)).map_err(failed)?)
}

fn bind(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
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
    pub fds: Vec<PeerFd>,
}

/// A connection with a peer.
#[derive(Debug)]
pub struct Link(Async<PeerFd>);

impl Drop for Link {
    fn drop(&mut self) {
        // The peer hears of it now, whenever the socket is closed.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

impl Link {
    /// Of a peer that has come.
    ///
    /// # Errors
    /// The system does not watch it.
    pub fn of(fd: impl Into<PeerFd>) -> io::Result<Self> {
        Ok(Link(Async::new_nonblocking(fd.into())?))
    }

    /// Connects, now or not at all.
    ///
    /// # Errors
    /// There is no listener, or peers have sent what cannot be closed.
    pub fn connect(path: &Path) -> io::Result<Self> {
        check_closing()?;
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
    async fn fill(&self, mut to: &mut [u8], fds: &mut Vec<PeerFd>) -> Result<(), LinkError> {
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

    fn try_receive(&self, to: &mut [u8], fds: &mut Vec<PeerFd>) -> Result<usize, LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = rustix::net::recvmsg(self.0.get_ref(), &mut [IoSliceMut::new(to)], &mut ancillary, flags)
            .map_err(io::Error::from)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights.map(PeerFd::from));
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
