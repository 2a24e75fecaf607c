//! What a DHCPv6 client asks, and what it believes (RFC 8415, 18.2), without any packet or clock.

use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_wire::Ip6Prefix;

use crate::client_message6::{Association, FOREVER, Item, kind, status};
use crate::exchange6::Question;

/// RFC 8415, 7.6, and VPP's longest wait for a server that is not there.
const SOLICIT: (u32, u32, u32) = (1, 120, 0);
const REQUEST: (u32, u32, u32) = (1, 30, 10);
const RENEW: (u32, u32, u32) = (10, 600, 0);
const RELEASE: (u32, u32, u32) = (1, 0, 4);
const DECLINE: (u32, u32, u32) = (1, 0, 4);
const INFORMATION: (u32, u32, u32) = (1, 3600, 0);
/// How long a client waits that has declined all it had, as a DHCPv4 one (RFC 2131, 3.1): one station that answers for every address does
/// not have it ask for all that there are.
const PAUSE: Duration = Duration::from_secs(10);

/// How far a client is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It looks for servers.
    Solicit,
    /// It asks one for what that offers.
    Request,
    /// It has what it wanted.
    Bound,
    /// It asks whether that goes on.
    Renew,
    /// It asks all servers.
    Rebind,
    /// It tells its server that others have what that gave.
    Decline,
    /// It waits after that.
    Wait,
}

impl Phase {
    /// A word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Phase::Solicit => "solicit",
            Phase::Request => "request",
            Phase::Bound => "bound",
            Phase::Renew => "renew",
            Phase::Rebind => "rebind",
            Phase::Decline => "decline",
            Phase::Wait => "wait",
        }
    }
}

/// An address or a prefix that a client has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease6 {
    /// What it is.
    pub prefix: Ip6Prefix,
    /// Until when it is preferred; `None`: for good.
    pub preferred: Option<Time>,
    /// Until when it is valid.
    pub valid: Option<Time>,
}

/// What follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act6 {
    /// This is asked until it is answered, instead of what was asked before.
    Ask(Question),
    /// Nothing is asked any more.
    Quiet,
    /// It has this from now on.
    Add(Ip6Prefix),
    /// It has this no more.
    Remove(Ip6Prefix),
}

/// A server's answer.
#[derive(Clone, Copy, Debug)]
pub struct ServerReply<'a> {
    /// Which message it is.
    pub kind: u8,
    /// The server, by its number.
    pub server: u32,
    /// How it went.
    pub status: u16,
    /// What it gives.
    pub association: &'a Association,
}

/// A client of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine6 {
    /// What it tells its interfaces apart by.
    id: u32,
    /// How far it is.
    pub phase: Phase,
    /// Its server, by its number.
    pub server: Option<u32>,
    /// What it has.
    pub leases: Vec<Lease6>,
    /// When it asks whether that goes on.
    pub t1: Option<Time>,
    /// When it asks all servers.
    pub t2: Option<Time>,
    /// What others have, until the server knows.
    declined: Vec<Item>,
    /// When it asks for something else.
    resume: Option<Time>,
}

fn after(now: Time, seconds: u32) -> Option<Time> {
    (seconds != FOREVER).then(|| now.after(Duration::from_secs(seconds.into())))
}

/// Seconds until a time, rounded up.
fn until(time: Time, now: Time) -> u32 {
    let wait = Duration::from_nanos(time.0.saturating_sub(now.0));
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(FOREVER - 1)
}

impl Machine6 {
    /// A client that has nothing yet; what it asks first.
    pub fn start(id: u32) -> (Machine6, Vec<Act6>) {
        let mut machine = Machine6 {
            id,
            phase: Phase::Solicit,
            server: None,
            leases: Vec::new(),
            t1: None,
            t2: None,
            declined: Vec::new(),
            resume: None,
        };
        let acts = machine.solicit();
        (machine, acts)
    }

    fn ask(&self, kind: u8, (irt, mrt, mrc): (u32, u32, u32), mrd: u32, items: Vec<Item>) -> Act6 {
        let server = if kind == kind::SOLICIT || kind == kind::REBIND { None } else { self.server };
        let association = Association { id: self.id, items, ..Association::default() };
        Act6::Ask(Question { kind, server, irt, mrt, mrc, mrd, association })
    }

    fn solicit(&mut self) -> Vec<Act6> {
        (self.phase, self.server, self.t1, self.t2) = (Phase::Solicit, None, None, None);
        (self.declined, self.resume) = (Vec::new(), None);
        vec![self.ask(kind::SOLICIT, SOLICIT, 0, Vec::new())]
    }

    /// What it has, as it is written in messages.
    fn items(&self, now: Time) -> Vec<Item> {
        let left = |time: Option<Time>| time.map_or(FOREVER, |time| until(time, now));
        let item = |lease: &Lease6| Item {
            prefix: lease.prefix,
            preferred: left(lease.preferred),
            valid: left(lease.valid),
        };
        self.leases.iter().map(item).collect()
    }

    /// A server sent a message.
    pub fn hear(&mut self, said: &ServerReply<'_>, now: Time) -> Vec<Act6> {
        match (said.kind, self.phase) {
            (kind::ADVERTISE, Phase::Solicit) => self.advertised(said),
            (kind::REPLY, Phase::Request | Phase::Renew | Phase::Rebind) => self.replied(said, now),
            // RFC 8415, 18.2.10.3: whatever the server says of it.
            (kind::REPLY, Phase::Decline) => self.has_declined(now),
            _ => Vec::new(),
        }
    }

    /// Another station has an address that a server gave (RFC 8415, 18.2.8).
    pub fn decline(&mut self, prefix: Ip6Prefix) -> Vec<Act6> {
        let is_known = self.leases.iter().any(|lease| lease.prefix == prefix);
        if !is_known || self.server.is_none() {
            return Vec::new();
        }
        self.leases.retain(|lease| lease.prefix != prefix);
        self.declined.push(Item { prefix, preferred: 0, valid: 0 });
        self.phase = Phase::Decline;
        vec![Act6::Remove(prefix), self.ask(kind::DECLINE, DECLINE, 0, self.declined.clone())]
    }

    /// The server knows, or does not answer: it goes on with what it still has.
    fn has_declined(&mut self, now: Time) -> Vec<Act6> {
        self.declined.clear();
        if self.leases.is_empty() {
            (self.phase, self.resume) = (Phase::Wait, Some(now.after(PAUSE)));
        } else {
            self.phase = Phase::Bound;
        }
        vec![Act6::Quiet]
    }

    /// Its server has it ask again: this kind of message (RFC 8415, 18.2.11). One that asks already has no need of it.
    pub fn reconfigure(&mut self, kind: u8, now: Time) -> Vec<Act6> {
        match kind {
            _ if self.phase != Phase::Bound => Vec::new(),
            kind::RENEW => vec![self.renew(now)],
            kind::REBIND => vec![self.rebind(now)],
            _ => vec![self.ask(kind::INFORMATION, INFORMATION, 0, Vec::new())],
        }
    }

    fn renew(&mut self, now: Time) -> Act6 {
        self.phase = Phase::Renew;
        let rest = self.t2.map_or(0, |t2| until(t2, now).max(1));
        self.ask(kind::RENEW, RENEW, rest, self.items(now))
    }

    fn rebind(&mut self, now: Time) -> Act6 {
        self.phase = Phase::Rebind;
        let last =
            self.leases.iter().map(|lease| lease.valid).max_by_key(|valid| valid.unwrap_or(Time(u64::MAX)));
        let rest = last.flatten().map_or(0, |valid| until(valid, now).max(1));
        self.ask(kind::REBIND, RENEW, rest, self.items(now))
    }

    fn advertised(&mut self, said: &ServerReply<'_>) -> Vec<Act6> {
        let Association { items, status, .. } = said.association;
        let is_good = said.status == status::SUCCESS && *status == status::SUCCESS;
        if !is_good || !items.iter().any(|item| item.valid > 0) {
            return Vec::new();
        }
        (self.phase, self.server) = (Phase::Request, Some(said.server));
        vec![self.ask(kind::REQUEST, REQUEST, 0, items.clone())]
    }

    fn replied(&mut self, said: &ServerReply<'_>, now: Time) -> Vec<Act6> {
        let Association { t1, t2, items, status, .. } = said.association;
        if said.status != status::SUCCESS {
            return Vec::new();
        }
        match *status {
            // RFC 8415, 18.2.10.1: the client requests again what the server does not know.
            status::NO_BINDING if self.phase != Phase::Request => {
                (self.phase, self.server) = (Phase::Request, Some(said.server));
                return vec![self.ask(kind::REQUEST, REQUEST, 0, self.items(now))];
            }
            status::NO_ADDRESSES | status::NO_PREFIXES if self.phase == Phase::Request => {
                return self.solicit();
            }
            status::SUCCESS => {}
            _ => return Vec::new(),
        }
        // RFC 8415, 21.4 and 21.21: such times are not looked at.
        if *t1 > *t2 && *t2 > 0 {
            return Vec::new();
        }
        let mut acts = Vec::new();
        for item in items {
            let there = self.leases.iter().position(|lease| lease.prefix == item.prefix);
            let new = Lease6 {
                prefix: item.prefix,
                preferred: after(now, item.preferred),
                valid: after(now, item.valid),
            };
            match there.map(|at| self.leases.get_mut(at)) {
                Some(_) if item.valid == 0 => {
                    self.leases.retain(|lease| lease.prefix != item.prefix);
                    acts.push(Act6::Remove(item.prefix));
                }
                Some(Some(lease)) => *lease = new,
                _ if item.valid > 0 => {
                    self.leases.push(new);
                    acts.push(Act6::Add(item.prefix));
                }
                _ => {}
            }
        }
        if self.leases.is_empty() {
            acts.extend(self.solicit());
            return acts;
        }
        let shortest = items.iter().filter(|item| item.valid > 0).map(|item| item.preferred).min();
        let shortest = shortest.unwrap_or(FOREVER);
        // RFC 8415, 21.4: half and four fifths, if the server leaves it to the client.
        let part = |given: u32, fifths: u64| match given {
            0 if shortest == FOREVER => FOREVER,
            0 => (u64::from(shortest) * fifths / 10) as u32,
            given => given,
        };
        (self.t1, self.t2) = (after(now, part(*t1, 5)), after(now, part(*t2, 8)));
        (self.phase, self.server) = (Phase::Bound, Some(said.server));
        acts.push(Act6::Quiet);
        acts
    }

    /// When it is looked at next.
    pub fn next(&self) -> Option<Time> {
        let asks = match self.phase {
            Phase::Bound => self.t1.or(self.t2),
            Phase::Renew => self.t2,
            Phase::Wait => self.resume,
            _ => None,
        };
        self.leases.iter().filter_map(|lease| lease.valid).chain(asks).min()
    }

    /// Its time may have come.
    pub fn due(&mut self, now: Time) -> Vec<Act6> {
        let mut acts = Vec::new();
        let before = self.leases.len();
        self.leases.retain(|lease| {
            let has_gone = lease.valid.is_some_and(|valid| valid <= now);
            if has_gone {
                acts.push(Act6::Remove(lease.prefix));
            }
            !has_gone
        });
        let is_over = |time: Option<Time>| time.is_some_and(|time| time <= now);
        let has_lost_all = before > 0 && self.leases.is_empty() && self.phase != Phase::Decline;
        if has_lost_all || self.phase == Phase::Wait && is_over(self.resume) {
            acts.extend(self.solicit());
            return acts;
        }
        if matches!(self.phase, Phase::Bound | Phase::Renew) && is_over(self.t2) {
            acts.push(self.rebind(now));
        } else if self.phase == Phase::Bound && is_over(self.t1) {
            acts.push(self.renew(now));
        }
        acts
    }

    /// What it asked was not answered.
    pub fn unanswered(&mut self, now: Time) -> Vec<Act6> {
        match self.phase {
            Phase::Solicit | Phase::Request => self.solicit(),
            Phase::Decline => self.has_declined(now),
            // The next time that is due says what becomes of it.
            Phase::Bound | Phase::Renew | Phase::Rebind | Phase::Wait => Vec::new(),
        }
    }

    /// The link may be another one than before (RFC 8415, 18.2.12).
    pub fn moved(&mut self, now: Time) -> Vec<Act6> {
        if self.leases.is_empty() {
            return self.solicit();
        }
        (self.phase, self.t1, self.t2) = (Phase::Rebind, None, None);
        self.declined.clear();
        vec![self.ask(kind::REBIND, (1, 10, 0), 0, self.items(now))]
    }

    /// It ends: the server hears that it has no use for what it had.
    pub fn stop(&mut self, now: Time) -> Vec<Act6> {
        let mut acts = Vec::new();
        if self.leases.is_empty() || self.server.is_none() {
            acts.push(Act6::Quiet);
        } else {
            acts.push(self.ask(kind::RELEASE, RELEASE, 0, self.items(now)));
        }
        acts.extend(self.leases.drain(..).map(|lease| Act6::Remove(lease.prefix)));
        acts
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Time {
        Time(seconds * SECOND)
    }

    fn prefix(n: u8) -> Ip6Prefix {
        format!("2001:db8:{n:x}::/56").parse().unwrap()
    }

    fn given(items: &[(u8, u32, u32)], (t1, t2): (u32, u32), status: u16) -> Association {
        let items = items.iter().map(|(n, preferred, valid)| Item {
            prefix: prefix(*n),
            preferred: *preferred,
            valid: *valid,
        });
        Association { id: 1, t1, t2, items: items.collect(), status }
    }

    fn said(kind: u8, server: u32, association: &Association) -> ServerReply<'_> {
        ServerReply { kind, server, status: 0, association }
    }

    fn asked(acts: &[Act6]) -> &Question {
        let asks =
            acts.iter().find_map(|act| if let Act6::Ask(question) = act { Some(question) } else { None });
        asks.unwrap()
    }

    fn bound() -> Machine6 {
        let (mut machine, acts) = Machine6::start(1);
        assert_eq!((asked(&acts).kind, asked(&acts).server), (kind::SOLICIT, None));
        let offer = given(&[(1, 60, 120)], (20, 40), 0);
        let acts = machine.hear(&said(kind::ADVERTISE, 3, &offer), at(0));
        let request = asked(&acts);
        assert_eq!(
            (request.kind, request.server, request.association.items.len()),
            (kind::REQUEST, Some(3), 1)
        );
        let acts = machine.hear(&said(kind::REPLY, 3, &offer), at(0));
        assert_eq!(acts, [Act6::Add(prefix(1)), Act6::Quiet]);
        machine
    }

    #[test]
    fn it_gets_renews_rebinds_and_loses_what_it_has() {
        let mut machine = bound();
        assert_eq!((machine.phase, machine.next()), (Phase::Bound, Some(at(20))));
        assert!(machine.due(at(19)).is_empty());
        let acts = machine.due(at(20));
        let renew = asked(&acts);
        assert_eq!((renew.kind, renew.server, renew.mrd), (kind::RENEW, Some(3), 20));
        assert_eq!((renew.association.items[0].preferred, renew.association.items[0].valid), (40, 100));
        // It goes on.
        let longer = given(&[(1, 60, 120)], (20, 40), 0);
        assert_eq!(machine.hear(&said(kind::REPLY, 3, &longer), at(25)), [Act6::Quiet]);
        assert_eq!(machine.next(), Some(at(45)));
        // Its server is silent; another one answers.
        machine.due(at(45));
        let acts = machine.due(at(65));
        let rebind = asked(&acts);
        assert_eq!((rebind.kind, rebind.server, rebind.mrd), (kind::REBIND, None, 80));
        assert_eq!(machine.hear(&said(kind::REPLY, 9, &longer), at(70)), [Act6::Quiet]);
        assert_eq!(machine.server, Some(9));
        // All are silent.
        machine.due(at(90));
        machine.due(at(110));
        assert!(machine.unanswered(at(110)).is_empty());
        let acts = machine.due(at(190));
        assert_eq!((&acts[0], asked(&acts).kind), (&Act6::Remove(prefix(1)), kind::SOLICIT));
    }

    #[test]
    fn times_that_a_server_leaves_to_it_are_parts_of_the_lifetime() {
        let (mut machine, _) = Machine6::start(1);
        let offer = given(&[(1, 100, 200), (2, 50, 60)], (0, 0), 0);
        machine.hear(&said(kind::ADVERTISE, 0, &offer), at(0));
        machine.hear(&said(kind::REPLY, 0, &offer), at(0));
        assert_eq!((machine.t1, machine.t2), (Some(at(25)), Some(at(40))));
        let forever = given(&[(1, FOREVER, FOREVER), (2, 0, 0)], (0, 0), 0);
        machine.due(at(25));
        let acts = machine.hear(&said(kind::REPLY, 0, &forever), at(26));
        assert_eq!(acts, [Act6::Remove(prefix(2)), Act6::Quiet]);
        assert_eq!((machine.t1, machine.t2, machine.next()), (None, None, None));
    }

    #[test]
    fn what_is_no_offer_is_not_taken() {
        let (mut machine, _) = Machine6::start(1);
        for offer in [given(&[], (0, 0), 0), given(&[(1, 0, 0)], (0, 0), 0), given(&[(1, 9, 9)], (0, 0), 6)] {
            assert!(machine.hear(&said(kind::ADVERTISE, 0, &offer), at(0)).is_empty());
        }
        let good = given(&[(1, 9, 9)], (0, 0), 0);
        assert!(
            machine.hear(&ServerReply { status: 1, ..said(kind::ADVERTISE, 0, &good) }, at(0)).is_empty()
        );
        assert!(machine.hear(&said(kind::REPLY, 0, &good), at(0)).is_empty(), "nothing was requested");
        machine.hear(&said(kind::ADVERTISE, 0, &good), at(0));
        let crossed = given(&[(1, 9, 9)], (5, 4), 0);
        assert!(machine.hear(&said(kind::REPLY, 0, &crossed), at(0)).is_empty());
        // The server has changed its mind.
        let none = given(&[], (0, 0), status::NO_PREFIXES);
        assert_eq!(asked(&machine.hear(&said(kind::REPLY, 0, &none), at(0))).kind, kind::SOLICIT);
        machine.hear(&said(kind::ADVERTISE, 0, &good), at(0));
        assert_eq!(asked(&machine.unanswered(at(0))).kind, kind::SOLICIT);
    }

    #[test]
    fn a_server_that_forgot_is_asked_again_and_one_that_is_left_hears_so() {
        let mut machine = bound();
        machine.due(at(20));
        let forgot = given(&[], (0, 0), status::NO_BINDING);
        let acts = machine.hear(&said(kind::REPLY, 3, &forgot), at(21));
        assert_eq!((asked(&acts).kind, asked(&acts).association.items.len()), (kind::REQUEST, 1));
        machine.hear(&said(kind::REPLY, 3, &given(&[(1, 60, 120)], (20, 40), 0)), at(22));
        assert_eq!(asked(&machine.moved(at(23))).kind, kind::REBIND);
        let acts = machine.stop(at(24));
        assert_eq!((asked(&acts).kind, &acts[1]), (kind::RELEASE, &Act6::Remove(prefix(1))));
        assert_eq!(Machine6::start(1).0.stop(at(0)), [Act6::Quiet]);
    }
}
