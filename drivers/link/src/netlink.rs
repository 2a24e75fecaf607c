//! rtnetlink: one question and its answer, and sockets that hear what the kernel announces.

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::Error;

/// Sends `request`, with these flags (`NLM_F_CREATE`, ...) beside the usual ones, in the namespace of the calling thread.
/// Returns the kernel's first answer, or `None` for a bare acknowledgement.
///
/// # Errors
/// A refusal is an [`Error::Os`] called `what`.
pub fn ask(
    request: RouteNetlinkMessage,
    flags: u16,
    what: &'static str,
) -> Result<Option<RouteNetlinkMessage>, Error> {
    let socket = Socket::new(NETLINK_ROUTE).map_err(Error::os(what))?;
    send(&socket, request, NLM_F_REQUEST | NLM_F_ACK | flags, what)?;
    loop {
        let (datagram, _) = socket.recv_from_full().map_err(Error::os(what))?;
        for message in messages(&datagram) {
            match message?.payload {
                NetlinkPayload::InnerMessage(inner) => return Ok(Some(inner)),
                NetlinkPayload::Error(error) if error.code.is_some() => {
                    return Err(Error::Os { what, source: error.to_io() });
                }
                NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(None),
                _ => {}
            }
        }
    }
}

/// A socket that hears what the kernel announces to these groups (`RTMGRP_...`) in the namespace of the calling thread.
///
/// A reader of a table subscribes first, so that no change falls between the two.
///
/// # Errors
/// The kernel refuses; the refusal of the groups is called `what`.
pub(crate) fn subscribe(groups: u32, what: &'static str) -> Result<Socket, Error> {
    let mut socket = Socket::new(NETLINK_ROUTE).map_err(Error::os("socket(AF_NETLINK)"))?;
    socket.bind(&SocketAddr::new(0, groups)).map_err(Error::os(what))?;
    Ok(socket)
}

/// What a read of a subscription gives.
pub(crate) enum SubscriptionRead {
    /// Messages of the kernel.
    Datagram(Vec<u8>),
    /// Nothing that counts; there may be more.
    Nothing,
    /// The kernel has thrown announcements away that did not fit: what there is must be asked for again.
    Lost,
}

/// Announcements were lost, for the reader of a table: it asks for all of it twice.
///
/// The kernel throws away what it announces, without another error, until what waited before has been read; the first answer comes
/// behind that. What it says may be older than what was lost then, and what waited is older than what it says.
#[derive(Default)]
pub(crate) struct Loss(bool);

impl Loss {
    /// They were lost just now; whether the table is to be asked for, which is not so while an answer comes.
    pub fn asks(&mut self, answers: bool) -> bool {
        self.0 = true;
        !answers
    }

    /// An answer has ended; whether the table is to be asked for again.
    pub fn asks_again(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }
}

/// Reads one datagram.
///
/// # Errors
/// `EAGAIN` when none waits on a socket that does not block; the socket cannot be read.
pub(crate) fn hear(socket: &Socket) -> Result<SubscriptionRead, Error> {
    match socket.recv_from_full() {
        // Any process may send to a netlink socket; only the kernel's port number is 0.
        Ok((datagram, from)) if from.port_number() == 0 => Ok(SubscriptionRead::Datagram(datagram)),
        Ok(_) => Ok(SubscriptionRead::Nothing),
        Err(e) if e.raw_os_error() == Some(libc::EINTR) => Ok(SubscriptionRead::Nothing),
        Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => Ok(SubscriptionRead::Lost),
        Err(e) => Err(Error::os("recv(AF_NETLINK)")(e)),
    }
}

/// Serialises and sends one request to the kernel.
pub(crate) fn send(
    socket: &Socket,
    request: RouteNetlinkMessage,
    flags: u16,
    what: &'static str,
) -> Result<(), Error> {
    send_bytes(socket, &bytes(request, flags), what)
}

/// Sends a request that is written already.
///
/// # Errors
/// The kernel does not take it.
pub(crate) fn send_bytes(socket: &Socket, request: &[u8], what: &'static str) -> Result<(), Error> {
    socket.send_to(request, &SocketAddr::new(0, 0), 0).map_err(Error::os(what))?;
    Ok(())
}

/// A request as it is sent.
pub(crate) fn bytes(request: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut message = NetlinkMessage::from(request);
    message.header.flags = flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// The messages of one datagram, read.
pub(crate) fn messages(
    datagram: &[u8],
) -> impl Iterator<Item = Result<NetlinkMessage<RouteNetlinkMessage>, Error>> {
    pieces(datagram).map(read)
}

/// Reads one message.
///
/// # Errors
/// It is of a kind that is not known, or contradicts itself.
pub(crate) fn read(message: &[u8]) -> Result<NetlinkMessage<RouteNetlinkMessage>, Error> {
    NetlinkMessage::deserialize(message).map_err(|e| Error::Netlink(e.to_string()))
}

/// The messages of one datagram with their headers; iteration ends at the first that is cut off.
pub(crate) fn pieces(mut datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*datagram.first_chunk()?)).ok()?;
        let this = datagram.get(..length).filter(|m| m.len() >= 16)?;
        // Messages are aligned to four bytes.
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(this)
    })
}
