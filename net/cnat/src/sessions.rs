//! What a worker keeps: its sessions, found by the tuples of both of their directions.

use std::net::Ipv6Addr;

use shoal_flow::{
    FlowTable, Handle, InsertError, Ip6Flow, Search, Settings, Sweep, SweepAction, TableError, TableId, Tick,
};
use shoal_graph::clock::Time;
use shoal_nat::Random;

use crate::config::Limits;
use crate::session_direction::{Marks, NONE, SessionDirection, Tuple};
use crate::tcp::{CLOSING, DEFAULT, FOLLOWS, OPEN, State};

/// Ticks of a second.
pub const TICKS: u64 = 8;
/// Nanoseconds of a tick.
const TICK: u64 = 1_000_000_000 / TICKS;
/// The longest timeout, in seconds.
pub const LONGEST: u32 = Settings::LONGEST_TIMEOUT / TICKS as u32;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;
/// Families have numbers of tables of their own, which this bit tells apart in keys.
const IP6: u32 = 1 << 23;

/// The table of sessions. IPv4 addresses have the room of IPv6's: one limit is for both.
pub type Table = FlowTable<Ip6Flow, SessionDirection>;
/// A look-up under way.
pub type Query = Search<Ip6Flow>;

/// A session to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// What its packets come with.
    pub from: Tuple,
    /// What they leave with.
    pub to: Tuple,
    /// Whether they are IPv6's.
    pub is_ip6: bool,
    /// TCP, UDP, or ICMP of the family.
    pub protocol: u8,
    /// The forwarding table they come by.
    pub table: u32,
    /// That of the answers.
    pub back_table: u32,
    /// The translation that made it, and its serial number.
    pub translation: (u32, u32),
    /// What kind it is.
    pub marks: u8,
}

impl Session {
    /// The key of its packets.
    pub fn key(&self) -> Ip6Flow {
        key(self.from, self.protocol, self.is_ip6, self.table)
    }

    /// The key of the answers.
    pub fn back_key(&self) -> Ip6Flow {
        key(self.to.reversed(), self.protocol, self.is_ip6, self.back_table)
    }
}

/// The number in keys of a family's forwarding table.
#[inline(always)]
pub const fn table_number(is_ip6: bool, table: u32) -> u32 {
    if is_ip6 { table | IP6 } else { table }
}

/// The key of a packet.
#[inline(always)]
pub fn key(tuple: Tuple, protocol: u8, is_ip6: bool, table: u32) -> Ip6Flow {
    let table = TableId::new(table_number(is_ip6, table)).unwrap_or_default();
    let Tuple { src, dst, sport, dport } = tuple;
    Ip6Flow::new((Ipv6Addr::from_bits(src), sport), (Ipv6Addr::from_bits(dst), dport), protocol, table)
}

/// The tuple of a key.
pub fn tuple_of(key: &Ip6Flow) -> Tuple {
    let ((src, sport), (dst, dport)) = (key.source(), key.destination());
    Tuple { src: src.to_bits(), dst: dst.to_bits(), sport, dport }
}

/// The forwarding table of a key, and whether that is IPv6's.
pub fn table_of(key: &Ip6Flow) -> (u32, bool) {
    let number = key.table().number();
    (number & !IP6, number & IP6 != 0)
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A session has one of its tuples already.
    Taken,
    /// There are as many sessions as there may be.
    Full,
}

/// A session as it is shown, and as it goes from thread to thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its tuples.
    pub session: Session,
    /// What each direction is in.
    pub states: (State, State),
    /// Ticks since its last packet.
    pub age: u32,
    /// Its number.
    pub index: u32,
}

/// What a worker keeps.
pub struct Sessions {
    table: Option<Table>,
    /// Sessions; those with one direction count, too.
    len: usize,
    /// Most of them.
    most: usize,
    /// Those with a shared source.
    shared: usize,
    /// Sessions of each forwarding table, and most of them.
    by_table: Vec<(TableOf, u32)>,
    most_of_table: u32,
    /// Sessions on their way from another thread.
    parcel: Vec<Record>,
    /// Random numbers that cannot be predicted.
    pub random: Random,
}

/// A forwarding table of a family.
type TableOf = (u32, bool);

/// The tick of a moment.
#[inline(always)]
pub fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

/// Tables whose sessions a thread counts; sessions of others are not limited.
const MOST_TABLES: usize = 1024;

impl Sessions {
    /// For a router without translations.
    pub fn none() -> Self {
        Sessions {
            table: None,
            len: 0,
            shared: 0,
            most: 0,
            by_table: Vec::new(),
            most_of_table: u32::MAX,
            parcel: Vec::new(),
            random: Random::default(),
        }
    }

    /// Room for as many sessions as there may be.
    ///
    /// # Errors
    /// There is no memory.
    pub fn open(&mut self, limits: &Limits, now: Time) -> Result<(), TableError> {
        let settings = Settings::flows(limits.sessions.saturating_mul(2))
            .timeout(DEFAULT, ticks(limits.age))
            .timeout(OPEN, ticks(limits.tcp_age))
            .timeout(CLOSING, ticks(limits.closing_age));
        let table = FlowTable::new(settings, tick(now))?;
        *self = Sessions {
            table: Some(table),
            most: limits.sessions as usize,
            most_of_table: limits.sessions_of_table,
            // A node takes no memory: all that there may be is here.
            by_table: Vec::with_capacity(MOST_TABLES),
            random: std::mem::take(&mut self.random),
            ..Sessions::none()
        };
        Ok(())
    }

    /// Whether there is room for any.
    pub fn is_open(&self) -> bool {
        self.table.is_some()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether some have a shared source: packets of those are translated where they go out.
    #[inline(always)]
    pub fn has_shared(&self) -> bool {
        self.shared > 0
    }

    /// Numbers of records are below this.
    pub fn places(&self) -> u32 {
        self.table.as_ref().map_or(0, |table| table.places() as u32)
    }

    /// Begins to look for a packet's session.
    #[inline(always)]
    pub fn search(&self, key: Ip6Flow) -> Query {
        self.table.as_ref().map_or_else(Query::default, |table| table.search(key))
    }

    /// Goes on with several.
    #[inline(always)]
    pub fn seek(&self, searches: &mut [Query]) {
        if let Some(table) = &self.table {
            table.seek(searches);
        }
    }

    /// Goes on with one.
    #[inline(always)]
    pub fn seek_one(&self, search: &mut Query) {
        if let Some(table) = &self.table {
            table.seek_one(search);
        }
    }

    /// The table, if it is there.
    #[inline(always)]
    pub fn table(&mut self) -> Option<&mut Table> {
        self.table.as_mut()
    }

    /// The entry of a key.
    pub fn find(&self, key: Ip6Flow) -> Option<Handle> {
        self.table.as_ref()?.handle_of(key)
    }

    /// What is kept of an entry.
    pub fn way(&self, handle: Handle) -> Option<SessionDirection> {
        self.table.as_ref()?.get(handle).copied()
    }

    /// The key of an entry's other direction.
    pub fn peer_key(&self, peer: u32) -> Option<Ip6Flow> {
        let table = self.table.as_ref()?;
        table.key(table.handle_at(peer)?).copied()
    }

    /// Whether no session would be hindered by another with these tuples.
    pub fn is_free(&self, session: &Session) -> bool {
        self.find(session.key()).is_none() && self.find(session.back_key()).is_none()
    }

    fn of_table(&mut self, of: TableOf) -> Option<&mut u32> {
        let at = self.by_table.iter().position(|(table, _)| *table == of);
        let at = match at {
            Some(at) => at,
            None if self.by_table.len() < MOST_TABLES => {
                self.by_table.push((of, 0));
                self.by_table.len() - 1
            }
            None => return None,
        };
        self.by_table.get_mut(at).map(|(_, count)| count)
    }

    fn has_room(&mut self, of: TableOf) -> bool {
        let most = self.most_of_table;
        self.len < self.most && self.of_table(of).is_none_or(|count| *count < most)
    }

    /// Whether there is room for sessions of connections that stay as they are: those that are translated have half of all.
    pub fn has_room_to_pass(&self) -> bool {
        self.len < self.most / 2
    }

    /// Makes a session whose first packet comes now.
    ///
    /// # Errors
    /// One of its tuples is another's, or there is no room.
    pub fn create(&mut self, session: Session, now: Time) -> Result<Handle, Refusal> {
        let Session { from, to, protocol, is_ip6, table, back_table, translation, .. } = session;
        if !self.has_room((table, is_ip6)) {
            return Err(Refusal::Full);
        }
        let other = if table == back_table { 0 } else { Marks::OTHER_TABLE };
        let marks = session.marks & !Marks::RETURN | other;
        let is_alone = marks & Marks::ALONE != 0;
        let there = SessionDirection::new(is_ip6, (from, to), protocol, marks, translation);
        let back = SessionDirection::new(
            is_ip6,
            (to.reversed(), from.reversed()),
            protocol,
            marks | Marks::RETURN,
            translation,
        );
        let now = tick(now);
        let flows = self.table.as_mut().ok_or(Refusal::Full)?;
        let first = flows.insert(session.key(), there, DEFAULT, now).map_err(refusal)?;
        if !is_alone {
            let second = match flows.insert(session.back_key(), back, FOLLOWS, now) {
                Ok(second) => second,
                Err(e) => {
                    flows.remove(first);
                    return Err(refusal(e));
                }
            };
            for (handle, peer) in [(first, second), (second, first)] {
                if let Some(way) = flows.get_mut(handle) {
                    way.peer = peer.index();
                }
            }
        }
        self.len += 1;
        self.shared += usize::from(marks & Marks::SOURCE != 0);
        if let Some(count) = self.of_table((table, is_ip6)) {
            *count += 1;
        }
        Ok(first)
    }

    /// The forward entry of an entry's session.
    fn first(&self, handle: Handle) -> Option<Handle> {
        let table = self.table.as_ref()?;
        let way = table.get(handle)?;
        if way.marks.has(Marks::RETURN) { table.handle_at(way.peer) } else { Some(handle) }
    }

    /// Ends the session of an entry.
    pub fn remove(&mut self, handle: Handle) -> bool {
        let Some(first) = self.first(handle) else { return false };
        let Some(table) = self.table.as_mut() else { return false };
        let Some((key, way)) = table.remove(first) else { return false };
        if let Some(peer) = table.handle_at(way.peer) {
            table.remove(peer);
        }
        self.len = self.len.saturating_sub(1);
        self.shared = self.shared.saturating_sub(usize::from(way.marks.has(Marks::SOURCE)));
        if let Some(count) = self.of_table(table_of(&key)) {
            *count = count.saturating_sub(1);
        }
        true
    }

    /// Ticks since the last packet of an entry's session, in either direction.
    pub fn age(&self, handle: Handle, now: Tick) -> Option<u32> {
        let table = self.table.as_ref()?;
        let age = table.age(handle, now)?;
        let peer = table.handle_at(table.get(handle)?.peer).and_then(|peer| table.age(peer, now));
        Some(peer.map_or(age, |peer| age.min(peer)))
    }

    /// A packet of TCP moves the state of an entry's session.
    pub fn tcp(&mut self, handle: Handle, flags: u8, now: Time) -> Option<()> {
        let now = tick(now);
        let first = self.first(handle)?;
        let table = self.table.as_mut()?;
        let way = *table.get(handle)?;
        let peer = table.handle_at(way.peer);
        let other = peer.and_then(|peer| table.get(peer)).map(|way| way.state);
        let (mine, theirs) = way.state.after(other, flags);
        table.get_mut(handle)?.state = mine;
        if let Some(way) = peer.and_then(|peer| table.get_mut(peer)) {
            way.state = theirs;
        }
        if mine.timeout() != way.state.timeout() {
            table.set_timeout(first, mine.timeout(), now);
            // The new timeout is whole, however long the connection was silent before.
            table.touch(handle, now);
        }
        Some(())
    }

    /// When a session may end.
    #[inline(always)]
    pub fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Ends some whose time is over; tells how many.
    pub fn expire(&mut self, limits: &Limits, now: Time) -> usize {
        let (now, mut most, mut ended) = (tick(now), TIMERS_AT_ONCE, 0);
        while let Some(handle) = self.table.as_mut().and_then(|table| table.next_due(now, &mut most)) {
            let (age, way) = (self.age(handle, now).unwrap_or(0), self.way(handle));
            if age >= way.map_or(0, |way| ticks(limits.seconds(way.state.timeout()))) {
                ended += usize::from(self.remove(handle));
            } else if let Some(table) = self.table.as_mut() {
                // Packets came the other way.
                table.restart(handle, Tick(now.0.saturating_sub(u64::from(age))));
            }
        }
        ended
    }

    /// Ends all sessions; tells how many.
    pub fn purge(&mut self) -> usize {
        let Some(table) = self.table.as_mut() else { return 0 };
        table.sweep(&mut Sweep::default(), usize::MAX, |_, _| SweepAction::Remove);
        self.by_table.clear();
        self.shared = 0;
        std::mem::take(&mut self.len)
    }

    /// Sessions that go to another thread.
    pub fn parcel(records: Vec<Record>) -> Self {
        Sessions { parcel: records, ..Sessions::none() }
    }

    /// What a parcel has.
    pub fn records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.parcel)
    }

    /// Takes out the sessions that `goes` says.
    pub fn take_out(&mut self, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let now = self.table.as_ref().map_or(Tick(0), FlowTable::latest);
        let mut all = self.records();
        let here = (0..self.places()).filter_map(|index| self.record(index, now));
        let here: Vec<Record> = here.filter(|record| goes(record)).collect();
        for record in &here {
            if let Some(handle) = self.find(record.session.key()) {
                self.remove(handle);
            }
        }
        all.extend(here);
        all
    }

    /// Takes in a session that another thread had. One whose tuples were given out meanwhile is lost.
    pub fn take_in(&mut self, record: &Record, now: Tick) -> Option<()> {
        let first = self.create(record.session, Time(now.0.saturating_mul(TICK))).ok()?;
        let last = Tick(now.0.saturating_sub(record.age.into()));
        let table = self.table.as_mut()?;
        let way = table.get_mut(first)?;
        way.state = record.states.0;
        let peer = way.peer;
        if let Some(peer) = table.handle_at(peer) {
            table.get_mut(peer)?.state = record.states.1;
            table.touch(peer, last);
        }
        table.set_timeout(first, record.states.0.timeout(), last);
        Some(())
    }

    /// The session whose forward direction has this number.
    pub fn record(&self, index: u32, now: Tick) -> Option<Record> {
        let table = self.table.as_ref()?;
        let handle = table.handle_at(index)?;
        let (key, way) = (table.key(handle)?, table.get(handle)?);
        if way.marks.has(Marks::RETURN) {
            return None;
        }
        let peer = table.handle_at(way.peer);
        let back = peer.and_then(|peer| Some((table.key(peer)?, table.get(peer)?)));
        let (number, is_ip6) = table_of(key);
        let session = Session {
            from: tuple_of(key),
            to: way.to(),
            is_ip6,
            protocol: key.protocol(),
            table: number,
            back_table: back.map_or(number, |(key, _)| table_of(key).0),
            translation: (way.translation, way.serial),
            marks: way.marks.0 & !Marks::OTHER_TABLE,
        };
        let states = (way.state, back.map_or(State::default(), |(_, way)| way.state));
        Some(Record { session, states, age: self.age(handle, now)?, index })
    }
}

fn refusal(error: InsertError) -> Refusal {
    match error {
        InsertError::Exists(_) => Refusal::Taken,
        _ => Refusal::Full,
    }
}

/// Seconds as ticks.
pub fn ticks(seconds: u32) -> u32 {
    seconds.clamp(1, LONGEST).saturating_mul(TICKS as u32)
}

/// A session that no translation made.
pub const NO_TRANSLATION: (u32, u32) = (NONE, 0);
