//! DHCPv6 messages between clients and servers (RFC 8415, 8 and 21): addresses (IA_NA) and prefixes (IA_PD).

use std::net::Ipv6Addr;

use shoal_wire::Ip6Prefix;

use crate::message6::push;
use crate::reconfigure6::{ReconfigureKey, key_of};

/// Kinds of messages.
pub mod kind {
    /// Which servers are there?
    pub const SOLICIT: u8 = 1;
    /// This one is.
    pub const ADVERTISE: u8 = 2;
    /// May this client have what the server offers?
    pub const REQUEST: u8 = 3;
    /// May it keep what it has, from the same server?
    pub const RENEW: u8 = 5;
    /// The same, from any server.
    pub const REBIND: u8 = 6;
    /// What the server says.
    pub const REPLY: u8 = 7;
    /// The client has no use for it any more.
    pub const RELEASE: u8 = 8;
    /// Another station has what the server gave.
    pub const DECLINE: u8 = 9;
    /// The server has the client ask again.
    pub const RECONFIGURE: u8 = 10;
    /// What else should the client know?
    pub const INFORMATION: u8 = 11;
    /// Every kind that a client sends.
    pub const OF_CLIENTS: &[u8] = &[1, 3, 4, 5, 6, 8, 9, 11];
}

/// What a server says of how it went.
pub mod status {
    /// Well.
    pub const SUCCESS: u16 = 0;
    /// There is no address to give.
    pub const NO_ADDRESSES: u16 = 2;
    /// The server does not know that the client has something.
    pub const NO_BINDING: u16 = 3;
    /// There is no prefix to give.
    pub const NO_PREFIXES: u16 = 6;
}

const CLIENT: u16 = 1;
const SERVER: u16 = 2;
const IA_NA: u16 = 3;
const IA_ADDRESS: u16 = 5;
const WANTED: u16 = 6;
const PREFERENCE: u16 = 7;
const ELAPSED: u16 = 8;
const AUTHENTICATION: u16 = 11;
const STATUS: u16 = 13;
const RECONFIGURE_ACCEPT: u16 = 20;
const NAME_SERVERS: u16 = 23;
const IA_PD: u16 = 25;
const IA_PREFIX: u16 = 26;
const SOL_MAX_RT: u16 = 82;

/// A lifetime without end.
pub const FOREVER: u32 = u32::MAX;
/// Items of one message that are looked at.
const MOST_ITEMS: usize = 64;

/// What a client wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wanted {
    /// Addresses of an interface: IA_NA.
    Addresses,
    /// Prefixes for other links: IA_PD.
    Prefixes,
}

/// An address, which is a prefix of 128 bits, or a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// What it is.
    pub prefix: Ip6Prefix,
    /// Seconds for which it is preferred.
    pub preferred: u32,
    /// Seconds for which it is valid.
    pub valid: u32,
}

/// What is given to an interface, or asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Association {
    /// What the client tells its interfaces apart by.
    pub id: u32,
    /// Seconds until it is asked whether it goes on.
    pub t1: u32,
    /// Seconds until other servers are asked.
    pub t2: u32,
    /// Addresses or prefixes.
    pub items: Vec<Item>,
    /// How it went.
    pub status: u16,
}

/// A client's message.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest<'a> {
    /// What kind it is.
    pub kind: u8,
    /// What its answers are known by.
    pub transaction: [u8; 3],
    /// The client.
    pub client: &'a [u8],
    /// The server that it is for.
    pub server: Option<&'a [u8]>,
    /// Hundredths of a second since the first such message.
    pub elapsed: u16,
    /// What is asked for.
    pub wanted: Wanted,
    /// For which interface, and which it had or was offered.
    pub association: &'a Association,
    /// Whether the client obeys a server that has it ask again.
    pub reconfigures: bool,
}

impl ClientRequest<'_> {
    /// Its bytes behind the UDP header.
    pub fn write(&self) -> Vec<u8> {
        let [a, b, c] = self.transaction;
        let mut bytes = vec![self.kind, a, b, c];
        push(&mut bytes, CLIENT, self.client);
        if let Some(server) = self.server {
            push(&mut bytes, SERVER, server);
        }
        push(&mut bytes, ELAPSED, &self.elapsed.to_be_bytes());
        push(&mut bytes, WANTED, [NAME_SERVERS, SOL_MAX_RT].map(u16::to_be_bytes).as_flattened());
        // RFC 8415, 21.20: in the messages that get an answer with a key.
        const SAY_SO: [u8; 5] = [kind::SOLICIT, kind::REQUEST, kind::RENEW, kind::REBIND, kind::INFORMATION];
        if self.reconfigures && SAY_SO.contains(&self.kind) {
            push(&mut bytes, RECONFIGURE_ACCEPT, &[]);
        }
        if self.kind == kind::INFORMATION {
            return bytes;
        }
        let Association { id, t1, t2, items, .. } = self.association;
        let mut inner = [id, t1, t2].map(|word| word.to_be_bytes()).concat();
        for Item { prefix, preferred, valid } in items {
            let (times, address) = ([*preferred, *valid].map(u32::to_be_bytes), prefix.addr().octets());
            let times = times.as_flattened();
            match self.wanted {
                Wanted::Addresses => push(&mut inner, IA_ADDRESS, &[&address, times].concat()),
                Wanted::Prefixes => push(&mut inner, IA_PREFIX, &[times, &[prefix.len()], &address].concat()),
            }
        }
        push(&mut bytes, if self.wanted == Wanted::Addresses { IA_NA } else { IA_PD }, &inner);
        bytes
    }
}

/// A server's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What kind it is.
    pub kind: u8,
    /// What it answers.
    pub transaction: [u8; 3],
    /// The client it is for.
    pub client: Vec<u8>,
    /// The server.
    pub server: Vec<u8>,
    /// How much the server wants to be chosen.
    pub preference: u8,
    /// How it went.
    pub status: u16,
    /// Addresses.
    pub addresses: Option<Association>,
    /// Prefixes.
    pub prefixes: Option<Association>,
    /// Name servers.
    pub name_servers: Vec<Ipv6Addr>,
    /// The key by which it will prove that it has the client ask again.
    pub key: Option<ReconfigureKey>,
}

/// Options one behind the other; ends early at one that is cut short.
pub(crate) struct Options<'a>(pub &'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([n0, n1, l0, l1], rest) = self.0.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*l0, *l1])))?;
        self.0 = rest;
        Some((u16::from_be_bytes([*n0, *n1]), value))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn status_of(value: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*value.first_chunk()?))
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?))
}

fn item(number: u16, value: &[u8]) -> Option<Item> {
    if number == IA_ADDRESS {
        let prefix = Ip6Prefix::host(address(value, 0)?);
        return Some(Item { prefix, preferred: word(value, 16)?, valid: word(value, 20)? });
    }
    let prefix = Ip6Prefix::new(address(value, 9)?, *value.get(8)?).ok()?;
    Some(Item { prefix, preferred: word(value, 0)?, valid: word(value, 4)? })
}

fn association(number: u16, value: &[u8]) -> Option<Association> {
    let mut of = Association {
        id: word(value, 0)?,
        t1: word(value, 4)?,
        t2: word(value, 8)?,
        ..Association::default()
    };
    let inner = if number == IA_NA { IA_ADDRESS } else { IA_PREFIX };
    for (number, value) in Options(value.get(12..)?) {
        match number {
            STATUS => of.status = status_of(value)?,
            // RFC 8415, 21.6 and 21.22: one whose preferred lifetime is the longer one is not looked at.
            number if number == inner && of.items.len() < MOST_ITEMS => {
                of.items.extend(item(number, value).filter(|item| item.preferred <= item.valid));
            }
            _ => {}
        }
    }
    Some(of)
}

impl Answer {
    /// Reads one; `None`: it is none, or lacks who it is from or for.
    pub fn read(bytes: &[u8]) -> Option<Answer> {
        let ([kind, a, b, c], rest) = bytes.split_first_chunk::<4>()?;
        if ![kind::ADVERTISE, kind::REPLY].contains(kind) {
            return None;
        }
        let mut answer = Answer {
            kind: *kind,
            transaction: [*a, *b, *c],
            client: Vec::new(),
            server: Vec::new(),
            preference: 0,
            status: status::SUCCESS,
            addresses: None,
            prefixes: None,
            name_servers: Vec::new(),
            key: None,
        };
        for (number, value) in Options(rest) {
            match number {
                CLIENT => answer.client = value.to_vec(),
                SERVER => answer.server = value.to_vec(),
                AUTHENTICATION => answer.key = key_of(value),
                PREFERENCE => answer.preference = *value.first()?,
                STATUS => answer.status = status_of(value)?,
                IA_NA => answer.addresses = association(number, value),
                IA_PD => answer.prefixes = association(number, value),
                NAME_SERVERS => {
                    let (servers, _) = value.as_chunks::<16>();
                    answer.name_servers = servers.iter().map(|s| Ipv6Addr::from(*s)).collect();
                }
                _ => {}
            }
        }
        (!answer.client.is_empty() && !answer.server.is_empty()).then_some(answer)
    }

    /// What it gives of what a client wants.
    pub fn association(&self, wanted: Wanted) -> Option<&Association> {
        match wanted {
            Wanted::Addresses => self.addresses.as_ref(),
            Wanted::Prefixes => self.prefixes.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn prefix(text: &str) -> Ip6Prefix {
        text.parse().unwrap()
    }

    fn ask(wanted: Wanted, item: Item) -> Vec<u8> {
        let association = Association { id: 7, t1: 20, t2: 40, items: vec![item], status: 0 };
        let (client, server) = (&[0, 3, 0, 1, 2, 0, 0, 0, 0, 1][..], &[0, 2, 9, 9][..]);
        let transaction = [1, 2, 3];
        let server = Some(server);
        ClientRequest {
            kind: kind::REQUEST,
            transaction,
            client,
            server,
            elapsed: 50,
            wanted,
            association: &association,
            reconfigures: false,
        }
        .write()
    }

    #[test]
    fn what_is_written_is_read() {
        for (wanted, text) in [(Wanted::Addresses, "2001:db8::9/128"), (Wanted::Prefixes, "2001:db8:77::/56")]
        {
            let item = Item { prefix: prefix(text), preferred: 60, valid: 120 };
            let mut bytes = ask(wanted, item);
            assert_eq!(bytes[..4], [kind::REQUEST, 1, 2, 3]);
            // A server answers with the same.
            bytes[0] = kind::REPLY;
            let answer = Answer::read(&bytes).unwrap();
            assert_eq!((answer.transaction, answer.server.len()), ([1, 2, 3], 4));
            let of = answer.association(wanted).unwrap();
            assert_eq!((of.id, of.t1, of.t2, &of.items[..]), (7, 20, 40, &[item][..]));
            for cut in 0..bytes.len() {
                let _ = Answer::read(&bytes[..cut]);
            }
        }
    }

    #[test]
    fn what_a_server_says_beside_is_read_and_nonsense_is_not() {
        let mut bytes = vec![kind::ADVERTISE, 0, 0, 1];
        bytes.extend([0, 1, 0, 2, 0, 3, 0, 2, 0, 2, 0, 9, 0, 7, 0, 1, 255, 0, 13, 0, 4, 0, 2, b'n', b'o']);
        let answer = Answer::read(&bytes).unwrap();
        assert_eq!((answer.preference, answer.status), (255, status::NO_ADDRESSES));
        assert_eq!(Answer::read(&bytes[..10]), None);
        bytes[0] = kind::SOLICIT;
        assert_eq!(Answer::read(&bytes), None);
        // An address that is preferred for longer than it is valid, and a prefix of 129 bits.
        let bad = Item { prefix: prefix("2001:db8::9/128"), preferred: 121, valid: 120 };
        let mut bytes = ask(Wanted::Addresses, bad);
        bytes[0] = kind::REPLY;
        assert!(Answer::read(&bytes).unwrap().addresses.unwrap().items.is_empty());
        let good = Item { prefix: prefix("2001:db8:77::/56"), preferred: 1, valid: 2 };
        let mut bytes = ask(Wanted::Prefixes, good);
        bytes[0] = kind::REPLY;
        let at = bytes.iter().rposition(|byte| *byte == 56).unwrap();
        bytes[at] = 129;
        assert!(Answer::read(&bytes).unwrap().prefixes.unwrap().items.is_empty());
    }
}
