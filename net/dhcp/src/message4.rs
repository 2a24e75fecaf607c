//! DHCPv4 messages (RFC 2131, RFC 2132).

use std::net::Ipv4Addr;

use shoal_wire::MacAddress;

/// Bytes in front of the options: the fixed part and the magic cookie.
const FIXED: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// All stations of the link hear the answer.
pub const BROADCAST: u16 = 0x8000;
/// The shortest message that all servers take (RFC 1542, 2.1).
const SHORTEST: usize = 300;

/// What kinds of messages there are (RFC 2132, 9.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A client looks for servers.
    Discover,
    /// A server offers an address.
    Offer,
    /// A client asks for what was offered, or for its lease to go on.
    Request,
    /// A client found the address used.
    Decline,
    /// A server grants.
    Ack,
    /// A server refuses.
    Nak,
    /// A client gives its address back.
    Release,
    /// A client asks for parameters only.
    Inform,
}

impl Kind {
    const fn number(self) -> u8 {
        match self {
            Kind::Discover => 1,
            Kind::Offer => 2,
            Kind::Request => 3,
            Kind::Decline => 4,
            Kind::Ack => 5,
            Kind::Nak => 6,
            Kind::Release => 7,
            Kind::Inform => 8,
        }
    }

    const fn of(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Discover,
            2 => Kind::Offer,
            3 => Kind::Request,
            4 => Kind::Decline,
            5 => Kind::Ack,
            6 => Kind::Nak,
            7 => Kind::Release,
            8 => Kind::Inform,
            _ => return None,
        })
    }

    /// Whether servers send it.
    pub const fn is_of_server(self) -> bool {
        matches!(self, Kind::Offer | Kind::Ack | Kind::Nak)
    }
}

/// Numbers of options.
pub mod option {
    /// The network's mask.
    pub const MASK: u8 = 1;
    /// Routers.
    pub const ROUTER: u8 = 3;
    /// Servers of names.
    pub const NAME_SERVERS: u8 = 6;
    /// The client's name.
    pub const HOST_NAME: u8 = 12;
    /// The network's broadcast address.
    pub const BROADCAST_ADDRESS: u8 = 28;
    /// Servers of time.
    pub const TIME_SERVERS: u8 = 42;
    /// The address that is asked for.
    pub const REQUESTED: u8 = 50;
    /// Seconds of the lease.
    pub const LEASE: u8 = 51;
    /// The kind of the message.
    pub const KIND: u8 = 53;
    /// The server.
    pub const SERVER: u8 = 54;
    /// Options that the client wants.
    pub const WANTED: u8 = 55;
    /// Seconds until the client asks for its lease to go on.
    pub const RENEWAL: u8 = 58;
    /// Seconds until it asks all servers.
    pub const REBINDING: u8 = 59;
    /// Who the client is.
    pub const CLIENT: u8 = 61;
    /// What a relay says (RFC 3046).
    pub const RELAY: u8 = 82;
    /// Nothing follows.
    pub const END: u8 = 255;
}

/// A message as it came.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads one; `None`: it is none.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        (bytes.get(FIXED - 4..FIXED)? == COOKIE).then_some(Message { bytes })
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let four = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
        four.map_or(Ipv4Addr::UNSPECIFIED, |bytes| Ipv4Addr::from(*bytes))
    }

    /// What its request and its answer are known by.
    pub fn transaction(&self) -> u32 {
        self.address(4).to_bits()
    }

    /// The address that the client gets.
    pub fn given(&self) -> Ipv4Addr {
        self.address(16)
    }

    /// The client's link-layer address.
    pub fn client(&self) -> Option<MacAddress> {
        self.bytes.get(28..)?.first_chunk::<6>().map(|bytes| MacAddress(*bytes))
    }

    /// The options, each with its value, up to the end or where they are cut short.
    pub fn options(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.bytes.get(FIXED..).unwrap_or_default();
        std::iter::from_fn(move || {
            loop {
                let (number, after) = rest.split_first()?;
                match *number {
                    0 => rest = after,
                    option::END => return None,
                    number => {
                        let (length, after) = after.split_first()?;
                        let (value, after) = after.split_at_checked(usize::from(*length))?;
                        rest = after;
                        return Some((number, value));
                    }
                }
            }
        })
    }

    /// The value of an option.
    pub fn option(&self, number: u8) -> Option<&'a [u8]> {
        self.options().find(|(found, _)| *found == number).map(|(_, value)| value)
    }

    /// An address that an option says.
    pub fn address_option(&self, number: u8) -> Option<Ipv4Addr> {
        self.option(number)?.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Seconds that an option says.
    pub fn seconds(&self, number: u8) -> Option<u32> {
        self.option(number)?.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// What kind it is.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of(*self.option(option::KIND)?.first()?)
    }

    /// The message as a relay hands it on to a server (RFC 2131, 4.1; RFC 3046): it says where it came from. `None`: it has passed too
    /// many relays.
    pub fn relayed(&self, relay: Ipv4Addr, information: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.bytes.get(..FIXED)?.to_vec();
        let hops = bytes.get_mut(3)?;
        if *hops >= MOST_HOPS {
            return None;
        }
        *hops += 1;
        let gateway = bytes.get_mut(24..28)?;
        // A message that has been relayed names its first relay, which gets the answer: its option stays.
        let is_first = gateway == [0; 4];
        if is_first {
            gateway.copy_from_slice(&relay.octets());
        }
        for (number, value) in self.options() {
            push(&mut bytes, number, value);
        }
        let has_information = self.option(option::RELAY).is_some();
        if is_first && !has_information {
            push(&mut bytes, option::RELAY, information);
        }
        bytes.push(option::END);
        Some(bytes)
    }

    /// The bytes of the message.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Relays that a message may pass (RFC 1542, 4.1.1).
const MOST_HOPS: u8 = 16;

fn push(bytes: &mut Vec<u8>, number: u8, value: &[u8]) {
    let value = value.get(..value.len().min(255)).unwrap_or_default();
    bytes.extend([number, value.len() as u8]);
    bytes.extend(value);
}

/// A message of a client, to be made.
pub struct Draft<'a> {
    /// What kind it is.
    pub kind: Kind,
    /// What its answer is known by.
    pub transaction: u32,
    /// Whether all stations of the link are to hear the answer.
    pub flags: u16,
    /// The client's address, while it has one.
    pub client: Ipv4Addr,
    /// Its link-layer address.
    pub mac: MacAddress,
    /// Seconds since it began to ask.
    pub seconds: u16,
    /// Options with their values.
    pub options: Vec<(u8, &'a [u8])>,
}

impl Draft<'_> {
    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![0; FIXED];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(to) = bytes.get_mut(at..at + value.len()) {
                to.copy_from_slice(value);
            }
        };
        // Of a client, over Ethernet, whose addresses have six bytes.
        put(0, &[1, 1, 6, 0]);
        put(4, &self.transaction.to_be_bytes());
        put(8, &self.seconds.to_be_bytes());
        put(10, &self.flags.to_be_bytes());
        put(12, &self.client.octets());
        put(28, &self.mac.0);
        put(FIXED - 4, &COOKIE);
        push(&mut bytes, option::KIND, &[self.kind.number()]);
        for (number, value) in &self.options {
            push(&mut bytes, *number, value);
        }
        bytes.push(option::END);
        bytes.resize(bytes.len().max(SHORTEST), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn draft() -> Vec<u8> {
        let options = vec![(option::HOST_NAME, &b"gw"[..]), (option::REQUESTED, &[10, 0, 0, 7])];
        let (mac, client) = (MacAddress([2, 1, 2, 3, 4, 5]), Ipv4Addr::UNSPECIFIED);
        Draft { kind: Kind::Request, transaction: 9, flags: BROADCAST, client, mac, seconds: 0, options }
            .write()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = draft();
        let message = Message::read(&bytes).unwrap();
        assert_eq!((message.kind(), message.transaction(), bytes.len()), (Some(Kind::Request), 9, 300));
        assert_eq!(message.client(), Some(MacAddress([2, 1, 2, 3, 4, 5])));
        assert_eq!(message.option(option::HOST_NAME), Some(&b"gw"[..]));
        assert_eq!(message.address_option(option::REQUESTED), Some(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(message.option(option::MASK), None);
    }

    #[test]
    fn a_relay_says_where_a_message_came_from_once() {
        let bytes = draft();
        let relay = Ipv4Addr::new(192, 0, 2, 1);
        let once = Message::read(&bytes).unwrap().relayed(relay, &[1, 1, 7]).unwrap();
        let message = Message::read(&once).unwrap();
        assert_eq!((once[3], &once[24..28]), (1, &[192, 0, 2, 1][..]));
        let numbers: Vec<u8> = message.options().map(|(number, _)| number).collect();
        assert_eq!(numbers, [option::KIND, option::HOST_NAME, option::REQUESTED, option::RELAY]);
        assert_eq!(once.last(), Some(&option::END));
        let twice = message.relayed(Ipv4Addr::new(192, 0, 2, 9), &[9]).unwrap();
        assert_eq!((twice[3], &twice[24..28]), (2, &[192, 0, 2, 1][..]));
        assert_eq!(Message::read(&twice).unwrap().option(option::RELAY), Some(&[1, 1, 7][..]));
        let mut far = once;
        far[3] = 16;
        assert_eq!(Message::read(&far).unwrap().relayed(relay, &[]), None);
    }

    #[test]
    fn options_that_are_cut_short_end_there() {
        let mut bytes = draft();
        bytes.truncate(FIXED + 4);
        let message = Message::read(&bytes).unwrap();
        assert_eq!(message.options().collect::<Vec<_>>(), [(option::KIND, &[3][..])]);
        assert!(Message::read(&bytes[..239]).is_none());
        bytes[236] = 0;
        assert!(Message::read(&bytes).is_none(), "another protocol");
    }
}
