//! The handshake: connect, and wait for one message without bytes and with one descriptor.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, recvmsg, socket_with,
};

use crate::Error;

/// How long the router may take; it answers between two frames of packets.
const PATIENCE: Duration = Duration::from_secs(1);

/// Fetches the segment's descriptor.
pub(crate) fn fetch(path: &Path) -> Result<OwnedFd, Error> {
    let gone = |source: io::Error| Error::Gone { path: path.to_owned(), source };
    let strange = |reason: &str| Error::Handshake { path: path.to_owned(), reason: reason.to_owned() };
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|e| Error::System(e.into()))?;
    for side in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, side, Some(PATIENCE)).map_err(|e| Error::System(e.into()))?;
    }
    let address = SocketAddrUnix::new(path).map_err(|e| gone(e.into()))?;
    connect(&socket, &address).map_err(|e| gone(e.into()))?;

    // One byte of room, to see whether something else comes; descriptors beyond the first are closed by the buffer.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(&socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC);
    match received {
        Ok(message) if message.bytes == 0 => {}
        Ok(_) => return Err(strange("the message has bytes")),
        Err(e) if e == rustix::io::Errno::AGAIN => return Err(strange("nothing for a second")),
        Err(e) => return Err(strange(&e.to_string())),
    }
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut all) => all.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| strange("the message has no descriptor"))
}
