//! `nat44-ei-in2out-slowpath` and its like: packets that belong to no session yet, ICMP errors, packets between two hosts.
//! nat44-ei-in2out -> **nat44-ei-in2out-slowpath** -> where nat44-ei-in2out was sending them | ip4-icmp-error |
//! nat44-ei-hairpinning-handoff

use std::sync::Arc;

use shoal_buffer::{Buffer, Flags, Frame, Packet, SwIfIndex};
use shoal_derive::NextNodes;
use shoal_flow::Handle;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NextNodes, NodeIndex, StatefulFrameNode};
use shoal_infra::Guard;
use shoal_ip4::IcmpError;
use shoal_nat::tuple::{TCP, UDP};
use shoal_nat::{Kind, Rewrite, Seen, Sum, Tuple};
use shoal_nat44::mapping::Mapping;
use shoal_nat44::packet::{Ticket, clamp, front, is_expiring, look_up_in, seen, table};

use super::Trace;
use super::next::{HAIRPIN, OUT2IN, OUTPUT};
use crate::config::{Config, Mode};
use crate::error::Error;
use crate::keeping::Keeping;
use crate::ports::Ports;
use crate::sessions::{Endpoint, Session, Sessions, TICKS, inside_key, outside_key, tick};
use crate::shared::{Exhausted, Shared};
use crate::way::{Marks, replace};

/// Where a packet may go, beside the next feature.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender is told that it has come as far as it may.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// Another thread has the session of the host it goes to.
    #[node("nat44-ei-hairpinning-handoff")]
    Hairpin,
}

/// The code of all four nodes.
pub struct Slow<const WAY: u8> {
    pub(crate) shared: Arc<Shared>,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    /// It goes on, as it was.
    Passed,
    /// It goes on, translated, by this session, if it is of one.
    Translated(Option<u32>),
    /// The same, and it goes to a host whose sessions are on another thread.
    Elsewhere(usize),
    /// Its sender is told that it came too far.
    Expired,
}

/// A packet, and where it is.
pub(super) struct Asked<'a> {
    pub config: &'a Config,
    pub shared: &'a Shared,
    pub guard: Guard<'a>,
    pub now: Time,
    pub thread: usize,
    /// The table it came by.
    pub table: u32,
    /// Of an output feature: where it goes out, and that interface's table.
    pub output: Option<(SwIfIndex, u32)>,
    /// Where its IP header is.
    pub front: usize,
    /// What it is.
    pub seen: Seen,
}

/// A host to which a packet from outside goes, and its table.
pub(super) type Host = (Endpoint, u32);

impl Asked<'_> {
    fn tuple(&self) -> Tuple {
        self.seen.tuple
    }

    /// The outside address and port that stand for a host's.
    pub fn outside_of(&self, sessions: &Sessions, host: Endpoint, protocol: u8) -> Option<(Endpoint, u32)> {
        if let Some(handle) = sessions.find(inside_key(host, protocol, self.table)) {
            let way = sessions.way(handle)?;
            return Some((way.to(), sessions.peer_table(way.peer)?));
        }
        let mapping =
            self.config.mappings.local((host.0, host.1, protocol), self.table, self.config.inside_table)?;
        let outside = self.config.outside.table;
        (!mapping.identity).then(|| ((mapping.external.0, mapping.external_port(host.1)), outside))
    }

    /// The host that an outside address and port stand for.
    pub fn host_of(&self, sessions: &Sessions, end: Endpoint, protocol: u8) -> Option<Host> {
        let found = [self.table, self.config.outside.table]
            .into_iter()
            .find_map(|table| sessions.find(outside_key(end, protocol, table)));
        if let Some(handle) = found {
            let way = sessions.way(handle)?;
            return Some((way.to(), sessions.peer_table(way.peer)?));
        }
        let mapping = self.config.mappings.external(end.0, end.1, protocol)?;
        local_of(mapping, end.1)
    }

    /// Whether the destination is a host of this router, by its outside address.
    fn is_served(&self, sessions: &Sessions) -> bool {
        let Tuple { dst, dport, .. } = self.tuple();
        self.config.known.may_have(dst)
            && (self.host_of(sessions, (dst, dport), self.seen.protocol).is_some()
                || self.config.is_pool(dst) && self.config.of_port(dport, dst) != self.thread)
    }

    /// Whether a packet of an output feature has been translated when it came in, or is a host's answer to one that was.
    fn left(&self, sessions: &Sessions, tx_table: u32) -> bool {
        let (Tuple { src, sport, dst, dport }, protocol) = (self.tuple(), self.seen.protocol);
        let tables = [tx_table, self.table];
        tables.iter().any(|table| {
            sessions.find(outside_key((src, sport), protocol, *table)).is_some()
                || sessions.find(inside_key((dst, dport), protocol, *table)).is_some()
        })
    }

    pub fn is_translated(&self, sessions: &Sessions) -> bool {
        let dst = self.tuple().dst;
        match self.output {
            // A host that asks all for an address (DHCP).
            Some((_, table)) => dst != u32::MAX && !self.left(sessions, table),
            None => self.is_served(sessions) || self.leads_outside(),
        }
    }

    pub fn leads_outside(&self) -> bool {
        let Asked { config, shared, guard, table, .. } = *self;
        shared.reach.leads_outside(&config.outside, table, self.tuple().dst, guard)
    }

    fn way_out(&self) -> u32 {
        let Asked { config, shared, guard, table, .. } = *self;
        match self.output {
            Some((_, table)) => table,
            None => shared.reach.way_out(&config.outside, table, self.tuple().dst, guard),
        }
    }

    /// The session of a host's packet, made if need be; `None`: the packet stays as it is.
    fn from_host(&self, sessions: &mut Sessions) -> Result<Option<Handle>, Error> {
        let (config, Tuple { src, sport, dst, dport }) = (self.config, self.tuple());
        let protocol = self.seen.protocol;
        if let Some(handle) = sessions.find(inside_key((src, sport), protocol, self.table)) {
            return Ok(Some(handle));
        }
        if !self.is_translated(sessions) {
            return Ok(None);
        }
        let mapping = config.mappings.local((src, sport, protocol), self.table, config.inside_table);
        if mapping.is_some_and(|mapping| mapping.identity) {
            return Ok(None);
        }
        let outside_table = self.way_out();
        let ports = Ports { config, thread: self.thread, host: (src, self.table), protocol, outside_table };
        if mapping.is_none() {
            if config.mode != Mode::Dynamic {
                return Err(Error::NoTranslation);
            }
            if config.forwarding && !ports.has_address() {
                return Ok(None);
            }
        }
        sessions.make_room((src, self.table), config)?;
        let outside = match mapping {
            Some(mapping) => (mapping.external.0, mapping.external_port(sport)),
            None => ports.give(sessions).ok_or(Error::OutOfPorts)?,
        };
        let session = Session {
            inside: (src, sport),
            inside_table: self.table,
            outside,
            outside_table,
            protocol,
            is_static: mapping.is_some(),
            remote: (dst, dport),
        };
        Ok(Some(sessions.create(session, self.now)?))
    }

    /// The session of a packet to a host; `None`: the packet stays as it is.
    fn to_host(&self, sessions: &mut Sessions) -> Result<Option<Handle>, Error> {
        let (config, Tuple { src, sport, dst, dport }) = (self.config, self.tuple());
        let protocol = self.seen.protocol;
        if let Some(handle) = sessions.find(outside_key((dst, dport), protocol, self.table)) {
            return Ok(Some(handle));
        }
        let Some(mapping) = config.mappings.external(dst, dport, protocol) else {
            return self.unasked().then_some(None).ok_or(Error::NoTranslation);
        };
        if mapping.identity {
            return Ok(None);
        }
        let (inside, inside_table) = local_of(mapping, dport).ok_or(Error::NoTranslation)?;
        sessions.make_room((inside.0, inside_table), config)?;
        let session = Session {
            inside,
            inside_table,
            outside: (dst, dport),
            outside_table: self.table,
            protocol,
            is_static: true,
            remote: (src, sport),
        };
        let made = sessions.create(session, self.now)?;
        Ok(sessions.peer(made))
    }

    /// Whether a packet that nothing is known of passes: forwarding is on, it is for a DHCP client of this router or says what
    /// another router's sessions are, or it is a ping of the router itself.
    pub fn unasked(&self) -> bool {
        let (seen, Tuple { dst, dport, .. }) = (&self.seen, self.tuple());
        let is_own = || self.shared.reach.is_own(self.table, dst, self.guard) && !self.config.is_pool(dst);
        self.config.forwarding
            || seen.protocol == UDP && (dport == 68 || self.config.listener == Some((dst, dport)))
            || matches!(seen.kind, Kind::Query | Kind::Error) && is_own()
    }

    /// Changes a packet's source or destination without a session.
    pub fn rewrite(&self, pkt: &mut Packet<'_>, from: Tuple, to: Tuple) -> Result<(), Error> {
        let seen = &self.seen;
        let sum = if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) { Sum::Pseudo } else { Sum::Whole };
        let bytes = pkt.data_mut().get_mut(self.front..).ok_or(Error::CannotTranslate)?;
        Rewrite::new(from, to, seen.protocol)
            .write(bytes, seen.header.into(), seen.kind, seen.first, sum)
            .ok_or(Error::CannotTranslate)
    }

    /// A packet whose source is translated goes to another host of this router, if its destination is one's outside address. RFC
    /// 4787, REQ-9: the other sees its outside address and port.
    fn hairpin(&self, pkt: &mut Packet<'_>, sessions: &Sessions) -> Result<Option<usize>, Error> {
        let (config, thread) = (self.config, self.thread);
        let tuple = self.tuple();
        if !config.known.may_have(tuple.dst) {
            return Ok(None);
        }
        let owner = config.of_outside(tuple, self.seen.protocol);
        if owner != thread {
            let is_one = config.is_known(tuple.dst, tuple.dport, self.seen.protocol);
            return Ok(is_one.then_some(owner));
        }
        let Some((host, table)) = self.host_of(sessions, (tuple.dst, tuple.dport), self.seen.protocol) else {
            return Ok(None);
        };
        let to = replace(tuple, host, true, self.seen.kind == Kind::Query);
        self.rewrite(pkt, tuple, to)?;
        look_up_in(pkt, table);
        self.shared.counters.hairpin(thread, pkt.rx());
        Ok(None)
    }
}

/// The host of a mapping, by one of its outside ports.
fn local_of(mapping: &Mapping, port: u16) -> Option<Host> {
    let local = mapping.locals.first().filter(|_| !mapping.identity)?;
    let port = if mapping.is_address_only() { port } else { local.port };
    Some(((local.address, port), local.table))
}

impl<const WAY: u8> Slow<WAY> {
    const TO_HOST: bool = WAY == OUT2IN || WAY == HAIRPIN;

    fn one(&self, mut buffer: Buffer, sessions: &mut Sessions, config: &Config, cx: &mut FrameCx<'_>) {
        let mut pkt = cx.cache().packet(&mut buffer);
        let interface = if WAY == OUTPUT { pkt.tx() } else { pkt.rx() };
        let front = if WAY == OUTPUT { front::<true>(&pkt) } else { front::<false>(&pkt) };
        let next = *pkt.scratch::<Ticket>();
        let Some(seen) = seen(&self.shared.words, &pkt, front) else {
            self.shared.counters.path(Self::TO_HOST, true, Kind::Other).drop(cx.thread(), interface);
            return cx.drop(buffer, Error::CannotTranslate);
        };
        let done = self.judge(&mut buffer, (seen, front), sessions, config, cx);
        let path = self.shared.counters.path(Self::TO_HOST, true, seen.kind);
        let session = if let Ok(Done::Translated(Some(session))) = done { session.into() } else { -1 };
        Self::trace(&cx.cache().packet(&mut buffer), interface, next.next, session, cx);
        match done {
            Ok(Done::Passed) => cx.send_to(NodeIndex::from_number(next.next), buffer),
            Ok(Done::Translated(_)) => {
                path.add(seen.kind, cx.thread(), interface);
                cx.send_to(NodeIndex::from_number(next.next), buffer);
            }
            Ok(Done::Elsewhere(thread)) => {
                path.add(seen.kind, cx.thread(), interface);
                *cx.cache().packet(&mut buffer).scratch::<Ticket>() =
                    Ticket { thread: thread as u32, next: next.next };
                cx.send(Next::Hairpin.edge(), buffer);
            }
            Ok(Done::Expired) => {
                IcmpError::TTL.ask(&mut cx.cache().packet(&mut buffer));
                cx.send(Next::IcmpError.edge(), buffer);
            }
            Err(why) => {
                match why {
                    Error::CannotCreateUser => self.shared.counters.limit_reached(cx.thread()),
                    Error::OutOfPorts => self.shared.tell_exhausted(Exhausted::Ports, cx.now()),
                    Error::MaxSessions => {
                        let most = config.sessions;
                        self.shared.tell_exhausted(Exhausted::Sessions { most }, cx.now());
                    }
                    _ => {}
                }
                path.drop(cx.thread(), interface);
                cx.drop(buffer, why);
            }
        }
    }

    fn judge(
        &self,
        buffer: &mut Buffer,
        (seen, front): (Seen, usize),
        sessions: &mut Sessions,
        config: &Config,
        cx: &mut FrameCx<'_>,
    ) -> Result<Done, Error> {
        let mut pkt = cx.cache().packet(buffer);
        let shared = &*self.shared;
        let table = if WAY == OUTPUT {
            table::<true>(&shared.interfaces, &pkt)
        } else {
            table::<false>(&shared.interfaces, &pkt)
        };
        let tx = pkt.tx();
        let output = (WAY == OUTPUT).then(|| (tx, shared.interfaces.ip4_table(tx)));
        let mut asked = Asked {
            config,
            shared,
            guard: cx.guard(),
            now: cx.now(),
            thread: cx.thread(),
            table,
            output,
            front,
            seen,
        };
        if WAY == HAIRPIN {
            asked.table = config.outside.table;
            return match seen.kind {
                Kind::Error => asked.error_to_host(&mut pkt, sessions),
                _ => asked.hairpin(&mut pkt, sessions).map(|_| Done::Translated(None)),
            };
        }
        let known = match seen.kind {
            Kind::Error if Self::TO_HOST => return asked.error_to_host(&mut pkt, sessions),
            Kind::Error => return asked.error_from_host(&mut pkt, sessions),
            Kind::Other => return asked.stateless(&mut pkt, sessions, Self::TO_HOST),
            Kind::OtherIcmp if Self::TO_HOST => {
                return asked.unasked().then_some(Done::Passed).ok_or(Error::BadIcmpType);
            }
            Kind::OtherIcmp => {
                let passes = !asked.is_translated(sessions);
                return passes.then_some(Done::Passed).ok_or(Error::BadIcmpType);
            }
            _ if config.mode == Mode::Static => {
                return asked.stateless(&mut pkt, sessions, Self::TO_HOST);
            }
            _ if Self::TO_HOST => asked.to_host(sessions)?,
            _ => asked.from_host(sessions)?,
        };
        let Some(handle) = known else { return Ok(Done::Passed) };
        if WAY != OUTPUT && is_expiring(&pkt) {
            return Ok(Done::Expired);
        }
        asked.translate(&mut pkt, handle, sessions)
    }

    fn trace(pkt: &Packet<'_>, SwIfIndex(interface): SwIfIndex, next: u32, session: i64, cx: &FrameCx<'_>) {
        let (name, word) = match WAY {
            OUT2IN => ("NAT44_OUT2IN_SLOW_PATH", "session index"),
            HAIRPIN => ("NAT44_HAIRPIN", "session index"),
            _ => ("NAT44_IN2OUT_SLOW_PATH", "session"),
        };
        cx.trace(pkt, || Trace { name, interface, next, word, session });
    }
}

impl Asked<'_> {
    /// The packet becomes what its session says.
    fn translate(
        &mut self,
        pkt: &mut Packet<'_>,
        handle: Handle,
        sessions: &mut Sessions,
    ) -> Result<Done, Error> {
        let (config, now, seen, front) = (self.config, self.now, self.seen, self.front);
        let table = sessions.table().ok_or(Error::NoTranslation)?;
        table.touch(handle, tick(now));
        let way = table.get_mut(handle).ok_or(Error::NoTranslation)?;
        way.count(pkt.len().saturating_sub(front));
        let rewrite = way.rewrite(seen.tuple, seen.kind);
        let (peer, marks) = (way.peer, way.marks);
        let sum = if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) { Sum::Pseudo } else { Sum::Whole };
        let bytes = pkt.data_mut().get_mut(front..).ok_or(Error::CannotTranslate)?;
        rewrite.write(bytes, seen.header.into(), seen.kind, seen.first, sum).ok_or(Error::CannotTranslate)?;
        if seen.protocol == TCP {
            clamp(config.mss, &seen, pkt, front);
        }
        sessions.used(handle, config.refresh.saturating_mul(TICKS as u32), now);
        if marks.has(Marks::OTHER_TABLE)
            && let Some(table) = sessions.peer_table(peer)
        {
            look_up_in(pkt, table);
        }
        if marks.has(Marks::INWARD) {
            return Ok(Done::Translated(Some(handle.index())));
        }
        self.seen.tuple = rewrite.to;
        self.table = sessions.peer_table(peer).unwrap_or(config.outside.table);
        Ok(match self.hairpin(pkt, sessions)? {
            Some(thread) => Done::Elsewhere(thread),
            None => Done::Translated(Some(handle.index())),
        })
    }
}

impl<const WAY: u8> StatefulFrameNode for Slow<WAY> {
    const NAME: &'static str = match WAY {
        OUT2IN => "nat44-ei-out2in-slowpath",
        OUTPUT => "nat44-ei-in2out-output-slowpath",
        HAIRPIN => "nat44-ei-hairpinning",
        _ => "nat44-ei-in2out-slowpath",
    };
    type Feature = Keeping;
    type Next = Next;
    type Error = Error;

    fn frame(&self, sessions: &mut Sessions, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        frame.drain().for_each(|buffer| self.one(buffer, sessions, config, cx));
        self.shared.count(cx.thread(), sessions);
        self.shared.pass_on(cx.thread(), sessions);
    }
}
