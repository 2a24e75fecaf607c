//! When a client asks, and what it believes (RFC 2131, 4.4). Without packets and without clocks.

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_wire::{Ip4Prefix, MacAddress};

use crate::message4::{Kind, Message, option};

/// A question is asked again after so many seconds, and then less and less often.
const FIRST: u64 = 1;
const SLOWEST: u64 = 60;
/// Requests without an answer, after which servers are looked for again.
const REQUESTS: u32 = 7;
/// After a refusal servers are left alone for so long.
const PAUSE: Duration = Duration::from_secs(10);
/// The shortest lease, in seconds.
const SHORTEST: u32 = 1;

/// How far a client is, with VPP's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum State {
    /// It looks for servers.
    #[default]
    Discover = 0,
    /// It asks for what one has offered.
    Request = 1,
    /// It has an address.
    Bound = 2,
}

/// What a server has granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The address and its network.
    pub address: Ip4Prefix,
    /// The network's router.
    pub router: Option<Ipv4Addr>,
    /// Servers of names.
    pub name_servers: Vec<Ipv4Addr>,
    /// Who granted it.
    pub server: Ipv4Addr,
    /// Until when.
    pub until: Time,
}

/// What a client does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// It sends this kind of message, to all or to its server alone.
    Send {
        /// What kind.
        kind: Kind,
        /// To the server alone, from its own address.
        to_server: bool,
    },
    /// It has this lease now.
    Bind(Lease),
    /// It has none any more.
    Unbind,
}

/// A client of an interface.
#[derive(Clone, Debug)]
pub struct Machine {
    /// How far it is.
    pub state: State,
    /// What its questions and their answers are known by.
    pub transaction: u32,
    /// What was offered, and the server that offered it.
    pub offered: Option<(Ipv4Addr, Ipv4Addr)>,
    /// What it has.
    pub lease: Option<Lease>,
    /// When it asks for its lease to go on, and when it asks all servers.
    renew: (Time, Time),
    tries: u32,
    /// When it acts next.
    pub next: Time,
}

/// A message that came, and from where.
pub struct ReceivedPacket<'a> {
    /// What it says.
    pub message: Message<'a>,
    /// Its source address.
    pub source: Ipv4Addr,
    /// The interface's link-layer address.
    pub mac: MacAddress,
}

fn seconds(from: Time, seconds: u64) -> Time {
    from.after(Duration::from_secs(seconds))
}

impl Machine {
    /// One that begins to ask now.
    pub fn new(transaction: u32, now: Time) -> Self {
        Machine {
            state: State::Discover,
            transaction,
            offered: None,
            lease: None,
            renew: (now, now),
            tries: 0,
            next: now,
        }
    }

    fn wait(&mut self, now: Time) {
        let wait = (FIRST << self.tries.min(6)).min(SLOWEST);
        self.tries += 1;
        self.next = seconds(now, wait);
    }

    /// Starts over, some time from now.
    pub fn restart(&mut self, at: Time) {
        (self.state, self.offered, self.tries, self.next) = (State::Discover, None, 0, at);
        self.lease = None;
    }

    /// What it does now that its time has come.
    pub fn due(&mut self, now: Time) -> Vec<Act> {
        if now < self.next {
            return Vec::new();
        }
        if self.state == State::Request && self.tries >= REQUESTS {
            self.restart(now);
        }
        if let Some(lease) = &self.lease
            && now >= lease.until
        {
            self.restart(now);
            self.wait(now);
            return vec![Act::Unbind, Act::Send { kind: Kind::Discover, to_server: false }];
        }
        let kind = if self.state == State::Discover { Kind::Discover } else { Kind::Request };
        let to_server = self.state == State::Bound && now < self.renew.1;
        self.wait(now);
        if let Some(lease) = &self.lease {
            let until = lease.until;
            let change = if now < self.renew.1 { self.renew.1 } else { until };
            self.next = self.next.min(change).min(until);
        }
        vec![Act::Send { kind, to_server }]
    }

    /// Whether an answer is to this client's question. VPP believes those with another number, too, which servers send that VPP's
    /// users have; once there is a lease only its server's.
    fn is_for_me(&self, heard: &ReceivedPacket<'_>) -> bool {
        let numbered = heard.message.transaction() == self.transaction;
        let by_server = self.lease.as_ref().is_none_or(|lease| lease.server == heard.source);
        heard.message.client() == Some(heard.mac) && (numbered || by_server)
    }

    /// What it does now that a message has come.
    pub fn hear(&mut self, heard: &ReceivedPacket<'_>, now: Time) -> Vec<Act> {
        if !self.is_for_me(heard) {
            return Vec::new();
        }
        let message = &heard.message;
        match (message.kind(), self.state) {
            (Some(Kind::Offer), State::Discover) => {
                let server = message.address_option(option::SERVER).unwrap_or(heard.source);
                if !is_host(message.given()) {
                    return Vec::new();
                }
                (self.offered, self.state, self.tries) = (Some((message.given(), server)), State::Request, 0);
                self.wait(now);
                vec![Act::Send { kind: Kind::Request, to_server: false }]
            }
            (Some(Kind::Ack), State::Request | State::Bound) => self.granted(heard, now),
            (Some(Kind::Nak), State::Request | State::Bound) => {
                let had = self.lease.is_some();
                self.restart(now.after(PAUSE));
                if had { vec![Act::Unbind] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    fn granted(&mut self, heard: &ReceivedPacket<'_>, now: Time) -> Vec<Act> {
        let message = &heard.message;
        let address = message.given();
        // A lease without an end is one of 136 years (RFC 2131, 3.3).
        let (Some(length), true) = (message.seconds(option::LEASE), is_host(address)) else {
            return Vec::new();
        };
        let length = length.max(SHORTEST);
        let mask = message.address_option(option::MASK).map_or(u32::MAX, Ipv4Addr::to_bits);
        let width = mask.leading_ones();
        if mask.count_ones() != width {
            return Vec::new();
        }
        let Ok(prefix) = Ip4Prefix::new(address, width as u8) else { return Vec::new() };
        let renew = message.seconds(option::RENEWAL).unwrap_or(length / 2).clamp(1, length);
        let usual = (u64::from(length) * 7 / 8) as u32;
        let rebind = message.seconds(option::REBINDING).unwrap_or(usual).clamp(renew, length);
        let server = message.address_option(option::SERVER).unwrap_or(heard.source);
        let names = message.option(option::NAME_SERVERS).unwrap_or_default().chunks_exact(4);
        let lease = Lease {
            address: prefix,
            router: message.address_option(option::ROUTER).filter(|router| is_host(*router)),
            name_servers: names
                .filter_map(|four| four.first_chunk::<4>())
                .map(|four| Ipv4Addr::from(*four))
                .collect(),
            server,
            until: seconds(now, length.into()),
        };
        self.renew = (seconds(now, renew.into()), seconds(now, rebind.into()));
        (self.state, self.tries, self.next) = (State::Bound, 0, self.renew.0);
        self.offered = Some((address, server));
        self.lease = Some(lease.clone());
        vec![Act::Bind(lease)]
    }
}

/// Whether an address can be a host's.
fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_broadcast() || address.is_multicast() || address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
    use super::*;
    use crate::message4::Draft;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    fn answer(kind: Kind, transaction: u32, given: Ipv4Addr, options: &[(u8, &[u8])]) -> Vec<u8> {
        let client = Ipv4Addr::UNSPECIFIED;
        let options = options.to_vec();
        let mut bytes = Draft { kind, transaction, flags: 0, client, mac: MAC, seconds: 0, options }.write();
        bytes[0] = 2;
        bytes[16..20].copy_from_slice(&given.octets());
        bytes
    }

    fn hear(machine: &mut Machine, bytes: &[u8], source: Ipv4Addr, now: u64) -> Vec<Act> {
        let message = Message::read(bytes).unwrap();
        machine.hear(&ReceivedPacket { message, source, mac: MAC }, at(now))
    }

    const GIVEN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
    const LEASE: &[(u8, &[u8])] = &[
        (option::MASK, &[255, 255, 255, 0]),
        (option::ROUTER, &[10, 0, 0, 254]),
        (option::SERVER, &[10, 0, 0, 1]),
        (option::LEASE, &[0, 0, 0, 80]),
    ];

    fn bound() -> Machine {
        let mut machine = Machine::new(5, at(0));
        assert_eq!(machine.due(at(0)), [Act::Send { kind: Kind::Discover, to_server: false }]);
        let offer = answer(Kind::Offer, 5, GIVEN, LEASE);
        let asks = Act::Send { kind: Kind::Request, to_server: false };
        assert_eq!(hear(&mut machine, &offer, SERVER, 1), [asks]);
        let done = hear(&mut machine, &answer(Kind::Ack, 5, GIVEN, LEASE), SERVER, 1);
        let Act::Bind(lease) = &done[0] else { panic!("{done:?}") };
        assert_eq!(lease.address.to_string(), "10.0.0.7/24");
        assert_eq!((lease.router, lease.until), (Some(Ipv4Addr::new(10, 0, 0, 254)), at(81)));
        machine
    }

    #[test]
    fn a_lease_is_asked_for_renewed_and_ends() {
        let mut machine = bound();
        assert_eq!((machine.state, machine.next), (State::Bound, at(41)));
        assert_eq!(machine.due(at(40)), []);
        assert_eq!(machine.due(at(41)), [Act::Send { kind: Kind::Request, to_server: true }]);
        // No server answers: at last all servers are asked, and then the lease has ended.
        let mut acts = Vec::new();
        for now in 42..90 {
            acts.extend(machine.due(at(now)).into_iter().map(|act| (now, act)));
        }
        let all = |to_server| Act::Send { kind: Kind::Request, to_server };
        assert!(acts.iter().filter(|(now, _)| *now < 71).all(|(_, act)| *act == all(true)), "{acts:?}");
        assert!(acts.contains(&(71, all(false))), "{acts:?}");
        assert!(acts.contains(&(81, Act::Unbind)), "{acts:?}");
        assert_eq!(machine.state, State::Discover);
    }

    #[test]
    fn questions_without_answers_become_rarer() {
        let mut machine = Machine::new(5, at(0));
        let sent: Vec<u64> = (0..200).filter(|now| !machine.due(at(*now)).is_empty()).collect();
        assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }

    #[test]
    fn a_refusal_ends_the_lease_and_a_stranger_s_does_not() {
        let mut machine = bound();
        let nak = answer(Kind::Nak, 6, Ipv4Addr::UNSPECIFIED, &[]);
        assert_eq!(hear(&mut machine, &nak, Ipv4Addr::new(192, 0, 2, 9), 10), []);
        assert_eq!(hear(&mut machine, &nak, SERVER, 10), [Act::Unbind]);
        assert_eq!((machine.state, machine.next), (State::Discover, at(20)));
    }

    #[test]
    fn what_cannot_be_a_lease_is_none() {
        let mut machine = Machine::new(5, at(0));
        machine.due(at(0));
        assert_eq!(hear(&mut machine, &answer(Kind::Offer, 5, Ipv4Addr::BROADCAST, LEASE), SERVER, 1), []);
        hear(&mut machine, &answer(Kind::Offer, 5, GIVEN, LEASE), SERVER, 1);
        for (given, options) in [
            (Ipv4Addr::UNSPECIFIED, LEASE),
            (Ipv4Addr::new(224, 0, 0, 1), LEASE),
            (GIVEN, &[(option::MASK, &[255, 255, 255, 0][..])]),
            (GIVEN, &[(option::MASK, &[255, 0, 255, 0][..]), (option::LEASE, &[0, 0, 0, 80])]),
        ] {
            assert_eq!(hear(&mut machine, &answer(Kind::Ack, 5, given, options), SERVER, 1), [], "{given}");
        }
        assert_eq!(machine.state, State::Request);
        // A lease of no time is one of a second: the router does not ask without pause.
        let short = [(option::LEASE, &[0, 0, 0, 0][..])];
        assert_eq!(hear(&mut machine, &answer(Kind::Ack, 5, GIVEN, &short), SERVER, 1).len(), 1);
        assert_eq!(machine.next, at(2));
    }
}
