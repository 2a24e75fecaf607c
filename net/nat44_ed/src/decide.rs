//! What becomes of a packet that belongs to no session: one is made for it, it passes as it is, or it is dropped.

use shoal_flow::Handle;
use shoal_graph::clock::Time;
use shoal_infra::Guard;
use shoal_interface::SwIfIndex;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat::{Kind, ParsedPacket, Tuple};

use crate::affinity::Client;
use crate::bindings::BoundHost;
use crate::config::Config;
use crate::ports::Ports;
use crate::session_direction::Marks;
use crate::sessions::{Refusal, Session, Sessions, key};
use crate::shared::Shared;
use crate::tcp;
use shoal_nat44::mapping::{Local, Mapping, TwiceNat};
use shoal_nat44::ports::has_ports;

/// Why a packet is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// No port, or no address.
    OutOfPorts,
    /// No NAT translates it.
    IcmpType,
    /// There are as many sessions as there may be.
    MaxSessions,
    /// A connection begins with SYN.
    NonSyn,
    /// It is malformed, or its tuple is another session's.
    CannotTranslate,
    /// No session asked for it.
    NoTranslation,
    /// Another router begins sessions.
    Standby,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It has a session now.
    Session(Handle),
    /// It stays as it is.
    Pass,
    /// It is dropped.
    Drop(DropReason),
}

/// A packet, and where it is.
pub struct Asked<'a> {
    /// One version of the configuration.
    pub config: &'a Config,
    /// What tables there are.
    pub shared: &'a Shared,
    /// Proof that they may be read.
    pub guard: Guard<'a>,
    /// Now.
    pub now: Time,
    /// The thread.
    pub thread: usize,
    /// The interface it came in by.
    pub rx: SwIfIndex,
    /// The table it came by.
    pub table: u32,
    /// Of an output feature: where it goes out, and that interface's table.
    pub output: Option<(SwIfIndex, u32)>,
    /// What it is.
    pub seen: ParsedPacket,
}

impl Asked<'_> {
    fn tuple(&self) -> Tuple {
        self.seen.tuple
    }

    /// Whether there is room for a session of a table's host.
    fn room(&self, sessions: &mut Sessions, table: u32) -> Result<(), DropReason> {
        let config = self.config;
        // A tuple that this router gave out might be given to another flow by the one that forwards.
        if config.standby {
            return Err(DropReason::Standby);
        }
        let full = |sessions: &Sessions| {
            sessions.len() >= config.sessions as usize || sessions.of_table(table) >= config.limit(table)
        };
        if !full(sessions) {
            return Ok(());
        }
        // A session that lives is never ended for another (RFC 6888, REQ-11).
        if sessions.make_room(&config.timeouts, self.now) > 0 && !full(sessions) {
            return Ok(());
        }
        Err(DropReason::MaxSessions)
    }

    /// A packet from inside.
    pub fn in2out(&self, sessions: &mut Sessions) -> Verdict {
        self.decide_inside(sessions)
            .map_or_else(Verdict::Drop, |made| made.map_or(Verdict::Pass, Verdict::Session))
    }

    /// A packet from outside.
    pub fn out2in(&self, sessions: &mut Sessions) -> Verdict {
        let (tuple, protocol) = (self.tuple(), self.seen.protocol);
        if self.seen.kind == Kind::OtherIcmp {
            return Verdict::Drop(DropReason::IcmpType);
        }
        let found = self.config.mappings.external(tuple.dst, tuple.dport, protocol);
        let made = match found {
            Some(mapping) if mapping.identity => return Verdict::Pass,
            Some(mapping) => self.by_mapping(sessions, mapping),
            None => match self.bound(sessions, Some(tuple.src)) {
                Some(bound) => self.by_binding(sessions, bound),
                None => return self.unasked(sessions),
            },
        };
        // What was made is named by its inside entry; the packet has the other's key.
        let made = made.and_then(|handle| sessions.peer(handle).ok_or(DropReason::CannotTranslate));
        made.map_or_else(Verdict::Drop, Verdict::Session)
    }

    /// Whether a packet of an output feature leaves its session already, or is none of hosts.
    fn left(&self, sessions: &Sessions, tx_table: u32) -> bool {
        let (back, protocol) = (self.tuple().reversed(), self.seen.protocol);
        let leaves = |table| {
            let way = sessions.find(key(back, protocol, table)).and_then(|handle| sessions.way(handle));
            way.is_some_and(|way| !way.marks.has(Marks::BYPASS))
        };
        leaves(tx_table) || (self.table != tx_table && leaves(self.table))
    }

    fn is_translated(&self, sessions: &Sessions, hairpin: bool) -> bool {
        let Tuple { dst, .. } = self.tuple();
        match self.output {
            // A host that asks all for an address (DHCP).
            Some((_, table)) => dst != u32::MAX && !self.left(sessions, table),
            None if hairpin => true,
            None => {
                !self.config.forwarding
                    && self.shared.reach.leads_outside(&self.config.outside, self.table, dst, self.guard)
            }
        }
    }

    fn decide_inside(&self, sessions: &mut Sessions) -> Result<Option<Handle>, DropReason> {
        let (config, tuple, protocol) = (self.config, self.tuple(), self.seen.protocol);
        let served = config.mappings.external(tuple.dst, tuple.dport, protocol).filter(|m| !m.identity);
        let bound = if served.is_none() { self.bound_neighbour(sessions) } else { None };
        if !self.is_translated(sessions, served.is_some() || bound.is_some()) {
            return Ok(None);
        }
        if self.seen.kind == Kind::OtherIcmp {
            return Err(DropReason::IcmpType);
        }
        let of_host = (tuple.src, tuple.sport, protocol);
        let mapping = config.mappings.local(of_host, self.table, config.inside_table);
        if mapping.is_some_and(|mapping| mapping.identity) {
            return Ok(None);
        }
        self.room(sessions, self.table)?;
        if protocol == TCP && !tcp::is_first(self.seen.flags) {
            return Err(DropReason::NonSyn);
        }
        let mut session = Session {
            inside: tuple,
            inside_table: self.table,
            outside: tuple,
            outside_table: self.output.map_or_else(
                || self.shared.reach.way_out(&config.outside, self.table, tuple.dst, self.guard),
                |(_, table)| table,
            ),
            protocol,
            marks: if self.output.is_some() { Marks::OUTPUT } else { 0 },
        };
        if let Some(local) = served.and_then(|served| self.choose(served, sessions)) {
            // RFC 4787, REQ-9: the packet has the host's outside address and port when it comes to the other.
            session.outside.dst = local.address;
            session.outside.dport = if local.port == 0 { tuple.dport } else { local.port };
            session.outside_table = local.table;
            session.marks |= Marks::HAIRPIN;
        } else if let Some(BoundHost { host, table, .. }) = bound {
            (session.outside.dst, session.outside.dport) = host;
            session.outside_table = table;
            session.marks |= Marks::HAIRPIN;
        }
        let made = match mapping {
            Some(mapping) => self.statically(sessions, session, mapping),
            None => self.give(session).dynamic(sessions),
        };
        made.map(Some)
    }

    fn statically(
        &self,
        sessions: &mut Sessions,
        session: Session,
        mapping: &Mapping,
    ) -> Result<Handle, DropReason> {
        let mut session = session;
        session.marks |= Marks::STATIC | if mapping.balanced.is_some() { Marks::BALANCED } else { 0 };
        session.outside.src = mapping.external.0;
        session.outside.sport = mapping.external_port(session.inside.sport);
        if session.protocol == ICMP {
            session.outside.dport = session.outside.sport;
        }
        sessions.create(session, self.now).map_err(refused)
    }

    fn give(&self, session: Session) -> Ports<'_> {
        let Asked { config, now, thread, output, .. } = *self;
        Ports { config, now, thread, session, tx: output.map(|(tx, _)| tx) }
    }

    /// The host that serves a client.
    fn choose(&self, mapping: &Mapping, sessions: &mut Sessions) -> Option<Local> {
        let Some(affinity) = mapping.balanced else { return mapping.locals.first().copied() };
        let Tuple { src, dst, dport, .. } = self.tuple();
        let client = Client { client: src, service: dst, port: dport, protocol: mapping.protocol };
        let had = sessions.affinity.get(&client, self.now).filter(|_| affinity > 0);
        let same = |local: &&Local| had == Some((local.address, local.port));
        let again = mapping.locals.iter().find(same);
        let local = again.or_else(|| by_weight(&mapping.locals, sessions)).copied()?;
        if affinity > 0 {
            sessions.affinity.put(client, (local.address, local.port), affinity, self.now);
        }
        Some(local)
    }

    fn by_mapping(&self, sessions: &mut Sessions, mapping: &Mapping) -> Result<Handle, DropReason> {
        let (tuple, protocol) = (self.tuple(), self.seen.protocol);
        if protocol == TCP && !tcp::is_first(self.seen.flags) {
            return Err(DropReason::NonSyn);
        }
        let local = self.choose(mapping, sessions).ok_or(DropReason::NoTranslation)?;
        self.room(sessions, local.table)?;
        let port = if mapping.is_address_only() { tuple.dport } else { local.port };
        let mut inside = Tuple { src: local.address, dst: tuple.src, sport: port, dport: tuple.sport };
        if protocol == ICMP {
            inside.dport = port;
        }
        let is_twice = match mapping.twice {
            TwiceNat::No => false,
            TwiceNat::Always => true,
            TwiceNat::OfItself => tuple.src == local.address,
        };
        let marks = Marks::STATIC
            | if mapping.balanced.is_some() { Marks::BALANCED } else { 0 }
            | if is_twice { Marks::TWICE } else { 0 };
        let session = Session {
            inside,
            inside_table: local.table,
            outside: tuple.reversed(),
            outside_table: self.table,
            protocol,
            marks,
        };
        if is_twice {
            return self.give(session).twice(sessions, mapping.pool_address);
        }
        match sessions.create(session, self.now) {
            Ok(handle) => Ok(handle),
            Err(Refusal::Taken) if matches!(protocol, TCP | UDP) => {
                // A session that the host began has the tuple: no tuple is given to two.
                let session = Session { marks: marks | Marks::TWICE, ..session };
                self.give(session).another(sessions).map_err(|_| DropReason::CannotTranslate)
            }
            Err(e) => Err(refused(e)),
        }
    }

    /// The host that has the outside port a packet goes to, if a remote host may send to it. Requests of ICMP begin nothing.
    fn bound(&self, sessions: &Sessions, remote: Option<u32>) -> Option<BoundHost> {
        let (tuple, protocol) = (self.tuple(), self.seen.protocol);
        let begins = matches!(protocol, TCP | UDP);
        begins.then(|| sessions.bindings().admitted((tuple.dst, tuple.dport), protocol, remote))?
    }

    /// The same of a packet of another host behind this router, which is the remote host by its own outside address.
    fn bound_neighbour(&self, sessions: &Sessions) -> Option<BoundHost> {
        let (tuple, protocol) = (self.tuple(), self.seen.protocol);
        let own = sessions.bindings().of_host((tuple.src, tuple.sport), protocol, self.table);
        self.bound(sessions, own.map(|(address, _)| address))
    }

    /// RFC 4787, REQ-8, and 5382, REQ-3: a remote host that the filtering admits begins a session.
    fn by_binding(&self, sessions: &mut Sessions, bound: BoundHost) -> Result<Handle, DropReason> {
        let (tuple, protocol) = (self.tuple(), self.seen.protocol);
        if protocol == TCP && !tcp::is_first(self.seen.flags) {
            return Err(DropReason::NonSyn);
        }
        self.room(sessions, bound.table)?;
        let (host, port) = bound.host;
        let session = Session {
            inside: Tuple { src: host, dst: tuple.src, sport: port, dport: tuple.sport },
            inside_table: bound.table,
            outside: tuple.reversed(),
            outside_table: self.table,
            protocol,
            marks: bound.marks,
        };
        sessions.create(session, self.now).map_err(refused)
    }

    /// A packet from outside that no mapping is for.
    fn unasked(&self, sessions: &mut Sessions) -> Verdict {
        let (config, tuple, protocol) = (self.config, self.tuple(), self.seen.protocol);
        // A server answers an interface that asks for its address (DHCP).
        if protocol == UDP && tuple.dport == 68 {
            return Verdict::Pass;
        }
        let is_own = self.shared.reach.is_own(self.table, tuple.dst, self.guard)
            && (!config.is_pool(tuple.dst) || self.is_primary(tuple.dst));
        if is_own && (config.forwarding || self.seen.kind == Kind::Query) {
            return Verdict::Pass;
        }
        if !config.forwarding {
            return Verdict::Drop(DropReason::NoTranslation);
        }
        let passing = Session {
            inside: tuple.reversed(),
            inside_table: self.table,
            outside: tuple.reversed(),
            outside_table: self.table,
            protocol,
            marks: Marks::BYPASS,
        };
        // It passes even without a session.
        let made =
            self.room(sessions, self.table).ok().and_then(|()| sessions.create(passing, self.now).ok());
        made.map_or(Verdict::Pass, |handle| match sessions.peer(handle) {
            Some(peer) => Verdict::Session(peer),
            None => Verdict::Pass,
        })
    }

    fn is_primary(&self, address: u32) -> bool {
        self.shared.addresses.primary(self.rx, self.guard) == address
    }
}

fn by_weight<'a>(locals: &'a [Local], sessions: &mut Sessions) -> Option<&'a Local> {
    let all: u32 = locals.iter().map(|local| u32::from(local.probability)).sum();
    let mut point = sessions.random.below(all);
    for local in locals {
        match point.checked_sub(local.probability.into()) {
            Some(rest) => point = rest,
            None => return Some(local),
        }
    }
    locals.first()
}

/// Why a session with a given tuple was not made.
pub fn refused(refusal: Refusal) -> DropReason {
    match refusal {
        Refusal::Taken => DropReason::CannotTranslate,
        Refusal::Full => DropReason::MaxSessions,
    }
}

/// Whether a packet to an interface on both sides comes from outside.
pub fn is_from_outside(config: &Config, seen: &ParsedPacket) -> bool {
    let Tuple { dst, dport, .. } = seen.tuple;
    let port = if has_ports(seen.protocol) { dport } else { 0 };
    config.is_pool(dst) || config.mappings.external(dst, port, seen.protocol).is_some()
}
