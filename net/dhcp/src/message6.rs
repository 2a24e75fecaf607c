//! DHCPv6 messages between relays and servers (RFC 8415).

use std::net::Ipv6Addr;

use shoal_wire::MacAddress;

/// A relay hands a message on.
pub const RELAY_FORWARD: u8 = 12;
/// A server answers a relay.
pub const RELAY_REPLY: u8 = 13;
/// Bytes of a relay's message in front of its options.
const HEADER: usize = 34;
/// Relays that a message may pass (RFC 8415, 7.6).
const MOST_HOPS: u8 = 8;

const RELAY_MESSAGE: u16 = 9;
const INTERFACE: u16 = 18;
const VIRTUAL_SUBNET: u16 = 68;
const LINK_LAYER: u16 = 79;

/// A message as a relay hands it on.
pub struct Forward<'a> {
    /// An address of the client's link.
    pub link: Ipv6Addr,
    /// Who sent it.
    pub peer: Ipv6Addr,
    /// The sender's link-layer address, if it is known.
    pub mac: Option<MacAddress>,
    /// What the interface is known by.
    pub interface: [u8; 4],
    /// Which VPN it is in.
    pub subnet: Option<Vec<u8>>,
    /// The sender's message.
    pub message: &'a [u8],
}

/// Writes an option.
pub(crate) fn push(bytes: &mut Vec<u8>, number: u16, value: &[u8]) {
    bytes.extend(number.to_be_bytes());
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
}

impl Forward<'_> {
    /// Its bytes; `None`: the message has passed too many relays.
    pub fn write(&self) -> Option<Vec<u8>> {
        let hops = match self.message {
            [RELAY_FORWARD, hops, ..] if *hops >= MOST_HOPS => return None,
            [RELAY_FORWARD, hops, ..] => hops + 1,
            _ => 0,
        };
        let mut bytes = vec![RELAY_FORWARD, hops];
        bytes.extend(self.link.octets());
        bytes.extend(self.peer.octets());
        push(&mut bytes, INTERFACE, &self.interface);
        // RFC 6939: by the first relay only.
        if let Some(mac) = self.mac.filter(|_| hops == 0) {
            push(&mut bytes, LINK_LAYER, &[&[0, 1][..], &mac.0].concat());
        }
        push(&mut bytes, RELAY_MESSAGE, self.message);
        if let Some(subnet) = &self.subnet {
            push(&mut bytes, VIRTUAL_SUBNET, subnet);
        }
        Some(bytes)
    }
}

/// A server's answer to a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply<'a> {
    /// The receiver's address.
    pub peer: Ipv6Addr,
    /// What the interface is known by.
    pub interface: [u8; 4],
    /// What goes there.
    pub message: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Reads one; `None`: it is none, or does not say to which interface what goes.
    pub fn read(bytes: &'a [u8]) -> Option<Reply<'a>> {
        let (header, mut rest) = bytes.split_at_checked(HEADER)?;
        if header.first() != Some(&RELAY_REPLY) {
            return None;
        }
        let peer = Ipv6Addr::from(*header.get(18..)?.first_chunk::<16>()?);
        let (mut interface, mut message) = (None, None);
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let [n0, n1, l0, l1] = *head;
            let (value, after) = after.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
            match u16::from_be_bytes([n0, n1]) {
                INTERFACE => interface = Some(*value.first_chunk::<4>()?),
                // VPP's clients know servers whose message has no length: it is all that follows.
                RELAY_MESSAGE if value.is_empty() => {
                    message = Some(after);
                    break;
                }
                RELAY_MESSAGE => message = Some(value),
                _ => {}
            }
            rest = after;
        }
        Some(Reply { peer, interface: interface?, message: message.filter(|message| !message.is_empty())? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn forward(message: &[u8]) -> Forward<'_> {
        let (link, peer) = ("2001:db8::1".parse().unwrap(), "fe80::9".parse().unwrap());
        let mac = Some(MacAddress([2, 0, 0, 0, 0, 9]));
        Forward { link, peer, mac, interface: [0, 0, 0, 4], subnet: Some(vec![0, b'v']), message }
    }

    #[test]
    fn a_message_is_handed_on_with_where_it_came_from() {
        let bytes = forward(&[1, 2, 3]).write().unwrap();
        assert_eq!(bytes[..2], [RELAY_FORWARD, 0]);
        assert_eq!(bytes[18..34], "fe80::9".parse::<Ipv6Addr>().unwrap().octets());
        let options = [
            &[0, 18, 0, 4, 0, 0, 0, 4][..],
            &[0, 79, 0, 8, 0, 1, 2, 0, 0, 0, 0, 9],
            &[0, 9, 0, 3, 1, 2, 3],
            &[0, 68, 0, 2, 0, b'v'],
        ];
        assert_eq!(bytes[34..], options.concat());
        let again = forward(&bytes).write().unwrap();
        assert_eq!(again[1], 1);
        let mut far = bytes;
        far[1] = 8;
        assert_eq!(forward(&far).write(), None);
    }

    #[test]
    fn an_answer_says_where_it_goes_or_is_none() {
        let mut bytes = vec![RELAY_REPLY, 0];
        bytes.extend([0; 16]);
        bytes.extend("fe80::9".parse::<Ipv6Addr>().unwrap().octets());
        let head = bytes.clone();
        bytes.extend([0, 18, 0, 4, 0, 0, 0, 4, 0, 9, 0, 2, 7, 8]);
        let reply = Reply::read(&bytes).unwrap();
        assert_eq!((reply.interface, reply.message), ([0, 0, 0, 4], &[7, 8][..]));
        for options in
            [&[0, 9, 0, 2, 7, 8][..], &[0, 18, 0, 4, 0, 0, 0, 4], &[0, 18, 0, 4, 0, 0, 0, 4, 0, 9, 0, 9, 7]]
        {
            assert_eq!(Reply::read(&[&head[..], options].concat()), None, "{options:?}");
        }
        bytes[0] = RELAY_FORWARD;
        assert_eq!(Reply::read(&bytes), None);
    }
}
