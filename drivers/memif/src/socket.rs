//! Sockets of the control channel: their names, listening, connecting, and messages with descriptors.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use async_io::Async;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use shoal_link::{Listener, PeerFd, check_closing};
use shoal_module::door::SocketFile;

use crate::Error;
use crate::proto::{MESSAGE_BYTES, Malformed, Message};

/// Descriptors a message may bring: one. Room for all that the kernel lets through (`SCM_MAX_FD`): those for which there were
/// none it would close itself, on this thread.
const MOST_FDS: usize = 253;
/// Peers that wait to be taken.
const BACKLOG: i32 = 64;
/// Most bytes of a path, and of an abstract name.
const MOST_NAME: usize = 107;

/// Where peers meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// A name without one.
    Abstract(String),
}

impl Place {
    /// What an operator has written: `/PATH`, a name in the runtime directory, `@NAME` or `abstract:NAME`.
    ///
    /// # Errors
    /// It is no name of a socket.
    pub fn of(name: &str, runtime_dir: &Path) -> Result<Self, Error> {
        let wrong = |rule| Err(Error::FileName { name: name.to_owned(), rule });
        if let Some(name) = name.strip_prefix('@').or_else(|| name.strip_prefix("abstract:")) {
            if name.contains(",netns_name=") {
                return wrong("a socket in another network namespace is not offered: start the router in it");
            }
            if name.is_empty() || name.len() > MOST_NAME {
                return wrong("an abstract name has 1 to 107 bytes");
            }
            return Ok(Place::Abstract(name.to_owned()));
        }
        if name.is_empty() || name.contains('\0') {
            return wrong("PATH, or @NAME for one without a file");
        }
        // An absolute path takes the place of the directory.
        let path = runtime_dir.join(name);
        if path.as_os_str().len() > MOST_NAME {
            return wrong("a path has at most 107 bytes");
        }
        Ok(Place::File(path))
    }

    /// Makes the folders of a file in the runtime directory; an operator makes others, with the rights they want.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make_folder(&self, runtime_dir: &Path) -> Result<(), Error> {
        let Place::File(path) = self else { return Ok(()) };
        match path.parent() {
            Some(folder) if folder != runtime_dir && folder.starts_with(runtime_dir) => {
                let failed = |source| Error::Os { what: format!("folder {}", folder.display()), source };
                std::fs::create_dir_all(folder).map_err(failed)
            }
            _ => Ok(()),
        }
    }

    fn address(&self) -> io::Result<SocketAddrUnix> {
        Ok(match self {
            Place::File(path) => SocketAddrUnix::new(path)?,
            Place::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File(path) => path.display().fmt(f),
            Place::Abstract(name) => write!(f, "@{name}"),
        }
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Listens. A file is for its owner and group only, and replaces one without a listener.
///
/// # Errors
/// It is taken, or the system refuses.
pub fn listen(place: &Place) -> Result<Listener, Error> {
    let failed = |source| Error::Os { what: place.to_string(), source };
    let (socket, file) = match place {
        Place::Abstract(_) => (bind(place).map_err(failed)?, None),
        Place::File(path) => {
            let at = |path: &Path| Place::File(path.to_owned());
            let probe = |path: &Path| Link::connect(&at(path)).map(drop);
            let (socket, file) = SocketFile::place(path, None, probe, |path| bind(&at(path)))?;
            (socket, Some(file))
        }
    };
    Listener::new(socket, file).map_err(failed)
}

fn bind(place: &Place) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    rustix::net::bind(&socket, &place.address()?)?;
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
    /// A message with more than one descriptor.
    #[error("message with more than one descriptor")]
    TooManyFds,
    /// The system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
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
    pub fn connect(place: &Place) -> io::Result<Self> {
        check_closing()?;
        let socket = new_socket()?;
        rustix::net::connect(&socket, &place.address()?)?;
        Link::of(socket)
    }

    /// Sends a message, and a descriptor with it.
    ///
    /// # Errors
    /// The peer is gone.
    pub async fn send(&self, message: &Message, fd: Option<BorrowedFd<'_>>) -> Result<(), LinkError> {
        loop {
            match self.try_send(message, fd) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.0.writable().await?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    return Err(LinkError::Closed);
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Sends a message, now or not at all.
    ///
    /// # Errors
    /// The peer is gone, or does not read.
    pub fn try_send(&self, message: &Message, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = message.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd]);
        if let Some(fds) = &fds {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(self.0.get_ref(), &[IoSlice::new(&bytes)], &mut ancillary, flags)?;
        Ok(())
    }

    /// The next message, and a descriptor that came with it.
    ///
    /// # Errors
    /// There is none any more, or it is none.
    pub async fn receive(&self) -> Result<(Message, Option<PeerFd>), LinkError> {
        // The other end has gone and left words of this one unread. The kernel reports that before it gives the other
        // end's last words: why it went.
        let mut reset = false;
        loop {
            match self.try_receive() {
                Err(LinkError::Io(e)) if e.kind() == ErrorKind::WouldBlock => self.0.readable().await?,
                Err(LinkError::Io(e)) if e.kind() == ErrorKind::Interrupted => {}
                Err(LinkError::Io(e)) if e.kind() == ErrorKind::ConnectionReset => {
                    if std::mem::replace(&mut reset, true) {
                        return Err(LinkError::Closed);
                    }
                }
                done => return done,
            }
        }
    }

    fn try_receive(&self) -> Result<(Message, Option<PeerFd>), LinkError> {
        // One byte more than a message has, so that a longer one shows.
        let mut bytes = [0; MESSAGE_BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = rustix::net::recvmsg(self.0.get_ref(), &mut into, &mut ancillary, flags)
            .map_err(io::Error::from)?;
        // All that came is taken over, so that what is not wanted is closed.
        let mut fds: Vec<PeerFd> = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights.map(PeerFd::from));
            }
        }
        if got.bytes == 0 {
            return Err(LinkError::Closed);
        }
        if fds.len() > 1 || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(LinkError::TooManyFds);
        }
        let message = Message::decode(bytes.get(..got.bytes).unwrap_or_default())?;
        Ok((message, fds.pop()))
    }

    /// The descriptor's number, for display.
    pub fn number(&self) -> i32 {
        self.0.get_ref().as_fd().as_raw_fd()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::block_on;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn what_a_peer_says_last_is_heard_also_if_it_has_left_words_unread() {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::empty(), None).unwrap();
        let near = Link::of(near).unwrap();
        near.try_send(&Message::Ack, None).unwrap();
        let last = Message::Disconnect { code: 0, text: "why".into() };
        rustix::net::send(&far, &last.encode(), SendFlags::empty()).unwrap();
        drop(far);
        assert_eq!(block_on(near.receive()).unwrap().0, last);
        assert!(matches!(block_on(near.receive()), Err(LinkError::Closed)));
    }
}
