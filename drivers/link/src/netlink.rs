//! One question, one answer: the blocking half of rtnetlink.

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

/// Serialises and sends one request to the kernel.
pub(crate) fn send(
    socket: &Socket,
    request: RouteNetlinkMessage,
    flags: u16,
    what: &'static str,
) -> Result<(), Error> {
    let mut message = NetlinkMessage::from(request);
    message.header.flags = flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send_to(&bytes, &SocketAddr::new(0, 0), 0).map_err(Error::os(what))?;
    Ok(())
}

/// The messages of one datagram; iteration ends at the first that cannot be read.
pub(crate) fn messages(
    mut datagram: &[u8],
) -> impl Iterator<Item = Result<NetlinkMessage<RouteNetlinkMessage>, Error>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*datagram.first_chunk()?)).ok()?;
        let this = datagram.get(..length).filter(|m| m.len() >= 16)?;
        // Messages are aligned to four bytes.
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(NetlinkMessage::deserialize(this).map_err(|e| Error::Netlink(e.to_string())))
    })
}
