//! What a worker keeps: its sessions, found by both of their tuples.

use std::collections::HashMap;

use shoal_flow::{
    FlowTable, Handle, Ip4Flow, Search, Settings, Sweep, SweepAction, TableError, TableId, Tick,
};
use shoal_graph::clock::Time;
use shoal_nat::tuple::TCP;
use shoal_nat::{Random, Tuple};
use shoal_nat_state::sync::Tap;

use crate::affinity::Affinity;
use crate::bindings::Bindings;
use crate::config::{Config, Timeouts, ticks_of};
use crate::session_direction::{Marks, SessionDirection};
use crate::tcp::{ESTABLISHED, FOLLOWS, ICMP_TIMEOUT, OTHER, State, TRANSITORY, UDP_TIMEOUT};

/// Ticks of a second.
pub const TICKS: u64 = 8;
/// Nanoseconds of a tick.
const TICK: u64 = 1_000_000_000 / TICKS;
/// Seconds a session that has timed out is still listed, unless a packet comes or its room is needed.
pub const LINGER: u32 = 8;
/// The longest timeout, in seconds.
pub const LONGEST: u32 = (Settings::LONGEST_TIMEOUT / TICKS as u32) - LINGER;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;
/// Places looked at for sessions that have timed out, when there is no room for a new one.
const LOOKED_AT_FOR_ROOM: usize = 64;

/// The table of sessions.
pub type Table = FlowTable<Ip4Flow, SessionDirection>;
/// A look-up under way.
pub type Query = Search<Ip4Flow>;

/// A session to be made: the tuple it has inside and the one it has outside, each with its forwarding table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// What packets from inside come with.
    pub inside: Tuple,
    /// The table they come by.
    pub inside_table: u32,
    /// What they leave with.
    pub outside: Tuple,
    /// The table of the answers.
    pub outside_table: u32,
    /// TCP, UDP, ICMP or another.
    pub protocol: u8,
    /// What kind it is.
    pub marks: u8,
}

impl Session {
    /// The key of packets from inside.
    pub fn inside_key(&self) -> Ip4Flow {
        key(self.inside, self.protocol, self.inside_table)
    }

    /// The key of packets from outside.
    pub fn outside_key(&self) -> Ip4Flow {
        key(self.outside.reversed(), self.protocol, self.outside_table)
    }
}

/// The key of a packet.
#[inline(always)]
pub fn key(tuple: Tuple, protocol: u8, table: u32) -> Ip4Flow {
    let table = TableId::new(table).unwrap_or_default();
    Ip4Flow::new(tuple.source(), tuple.destination(), protocol, table)
}

/// The tuple of a key.
pub fn tuple_of(key: &Ip4Flow) -> Tuple {
    let ((src, sport), (dst, dport)) = (key.source(), key.destination());
    Tuple { src: src.to_bits(), dst: dst.to_bits(), sport, dport }
}

/// What happened to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It was made.
    Begins,
    /// It is there no more.
    Ends,
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A session has one of its tuples already.
    Taken,
    /// There are as many sessions as there may be.
    Full,
}

/// A session as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its tuples.
    pub session: Session,
    /// What each direction is in: inside's, outside's.
    pub states: (State, State),
    /// Packets and bytes of both directions.
    pub packets: u64,
    /// Bytes of both directions.
    pub bytes: u64,
    /// Ticks since its last packet.
    pub age: u32,
    /// Its number.
    pub index: u32,
}

/// What a worker keeps.
pub struct Sessions {
    table: Option<Table>,
    /// Outside ports that are one host's alone.
    pub(crate) bindings: Bindings,
    /// Sessions of each inside table.
    by_table: HashMap<u32, u32>,
    /// Where the search for room goes on.
    room: Sweep,
    /// Sessions on their way from another thread.
    parcel: Vec<Record>,
    /// Clients of balanced services, and the back end each had.
    pub affinity: Affinity,
    /// Numbers that no sender can guess.
    pub random: Random,
    /// Events since the last report to the main thread, while it wants them.
    events: Vec<(Event, Session)>,
    is_listed: bool,
    /// What another router hears of sessions.
    pub(crate) tap: Tap<Record>,
}

/// The tick of a moment.
#[inline(always)]
pub fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

impl Sessions {
    /// For a router without NAT.
    pub fn none() -> Self {
        Sessions {
            table: None,
            bindings: Bindings::default(),
            by_table: HashMap::new(),
            room: Sweep::default(),
            parcel: Vec::new(),
            affinity: Affinity::default(),
            random: Random::default(),
            events: Vec::new(),
            is_listed: false,
            tap: Tap::default(),
        }
    }

    /// Room for so many sessions.
    ///
    /// # Errors
    /// There is no memory.
    pub fn open(&mut self, config: &Config, now: Time) -> Result<(), TableError> {
        self.close();
        let mut settings = Settings::flows(config.sessions.saturating_mul(2));
        for (timeout, seconds) in classes(config.timeouts) {
            settings = settings.timeout(timeout, ticks(seconds + LINGER));
        }
        self.table = Some(FlowTable::new(settings, tick(now))?);
        self.bindings.set_addresses(&config.independent, config.sessions)
    }

    /// All sessions end.
    pub fn close(&mut self) {
        let (random, tap) = (std::mem::take(&mut self.random), std::mem::take(&mut self.tap));
        *self = Sessions { random, tap, ..Sessions::none() };
    }

    /// Has what happens kept for the main thread, or not.
    pub fn set_listed(&mut self, on: bool) {
        self.is_listed = on;
    }

    /// What happened since this was asked last.
    pub fn take_events(&mut self) -> std::vec::Drain<'_, (Event, Session)> {
        self.events.drain(..)
    }

    /// Packets that pass as they are have sessions that are not logged.
    fn list(&mut self, event: Event, session: &Session) {
        if self.is_listed && session.marks & Marks::BYPASS == 0 {
            self.events.push((event, *session));
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.len() / 2)
    }

    /// Numbers of records are below this.
    pub fn places(&self) -> u32 {
        self.table.as_ref().map_or(0, |table| table.places() as u32)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many come from an inside table.
    pub fn of_table(&self, table: u32) -> u32 {
        self.by_table.get(&table).copied().unwrap_or(0)
    }

    /// Begins to look for a packet's session.
    #[inline(always)]
    pub fn search(&self, key: Ip4Flow) -> Query {
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

    /// The table, if NAT is on.
    #[inline(always)]
    pub fn table(&mut self) -> Option<&mut Table> {
        self.table.as_mut()
    }

    /// The entry of a key.
    pub fn find(&self, key: Ip4Flow) -> Option<Handle> {
        self.table.as_ref()?.handle_of(key)
    }

    /// What is kept of an entry.
    pub fn way(&self, handle: Handle) -> Option<SessionDirection> {
        self.table.as_ref()?.get(handle).copied()
    }

    /// The entry of the other direction.
    pub fn peer(&self, handle: Handle) -> Option<Handle> {
        let table = self.table.as_ref()?;
        table.handle_at(table.get(handle)?.peer)
    }

    /// The key of an entry's other direction.
    pub fn peer_key(&self, peer: u32) -> Option<Ip4Flow> {
        let table = self.table.as_ref()?;
        table.key(table.handle_at(peer)?).copied()
    }

    /// Whether no session would be hindered by another with these tuples.
    pub fn is_free(&self, session: &Session) -> bool {
        self.find(session.inside_key()).is_none() && self.find(session.outside_key()).is_none()
    }

    /// Makes a session whose first packet comes now.
    ///
    /// # Errors
    /// One of its tuples is another's, its outside port is another host's, or there is no room.
    pub fn create(&mut self, session: Session, now: Time) -> Result<Handle, Refusal> {
        if !self.bindings.hold(&session) {
            return Err(Refusal::Taken);
        }
        let made = self.insert(session, now);
        if made.is_err() {
            self.bindings.release(&session);
        }
        made
    }

    fn insert(&mut self, session: Session, now: Time) -> Result<Handle, Refusal> {
        let Session { inside, outside, protocol, .. } = session;
        let mut marks = session.marks & !Marks::INWARD;
        if session.inside_table != session.outside_table {
            marks |= Marks::OTHER_TABLE;
        }
        let state = State::new(protocol);
        let there = SessionDirection::new(inside, outside, protocol, marks, state);
        let back = SessionDirection::new(
            outside.reversed(),
            inside.reversed(),
            protocol,
            marks | Marks::INWARD,
            state,
        );
        let now = tick(now);
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let first = table.insert(session.inside_key(), there, state.timeout(), now).map_err(refusal)?;
        let second = match table.insert(session.outside_key(), back, FOLLOWS, now) {
            Ok(second) => second,
            Err(e) => {
                table.remove(first);
                return Err(refusal(e));
            }
        };
        for (handle, peer) in [(first, second), (second, first)] {
            if let Some(way) = table.get_mut(handle) {
                way.peer = peer.index();
            }
        }
        *self.by_table.entry(session.inside_table).or_default() += 1;
        self.list(Event::Begins, &session);
        // Of a TCP connection another router hears when it is established.
        if self.tap.is_on() && protocol != TCP {
            self.tap.began(first.to_bits(), Time(now.0.saturating_mul(TICK)));
        }
        Ok(first)
    }

    /// Ends the session of an entry.
    pub fn remove(&mut self, handle: Handle) -> Option<Session> {
        let table = self.table.as_mut()?;
        let (key, way) = table.remove(handle)?;
        let peer = table.handle_at(way.peer).and_then(|peer| table.remove(peer));
        let Some((other_key, other)) = peer else { unreachable!("both directions come and go together") };
        let is_inward = way.marks.has(Marks::INWARD);
        let (inside, outside) = if is_inward { (other_key, key) } else { (key, other_key) };
        let there = if is_inward { other } else { way };
        if let Some(count) = self.by_table.get_mut(&inside.table().number()) {
            *count = count.saturating_sub(1);
        }
        let session = Session {
            inside: tuple_of(&inside),
            inside_table: inside.table().number(),
            outside: there.to(),
            outside_table: outside.table().number(),
            protocol: inside.protocol(),
            marks: there.marks.0,
        };
        self.bindings.release(&session);
        self.list(Event::Ends, &session);
        if self.tap.is_on() {
            self.tell_end(&session, (way, other));
        }
        Some(session)
    }

    /// Ends the session that a key names; whether there was one.
    pub fn end(&mut self, key: Ip4Flow) -> bool {
        self.find(key).and_then(|handle| self.remove(handle)).is_some()
    }

    /// Ticks since the last packet of an entry's session, in either direction.
    pub fn age(&self, handle: Handle, now: Tick) -> Option<u32> {
        let table = self.table.as_ref()?;
        let peer = table.handle_at(table.get(handle)?.peer)?;
        Some(table.age(handle, now)?.min(table.age(peer, now)?))
    }

    /// Whether an entry's session has had no packet for as long as its timeout is.
    pub fn is_timed_out(&self, handle: Handle, timeouts: &Timeouts, now: Tick) -> bool {
        let state = self.way(handle).map(|way| way.state);
        let Some((age, state)) = self.age(handle, now).zip(state) else { return false };
        age >= ticks_of(timeouts, state.timeout())
    }

    /// A packet of TCP moves the state of an entry's session; tells what that means.
    pub fn tcp(&mut self, handle: Handle, flags: u8, now: Time) -> Option<crate::tcp::Change> {
        let now = tick(now);
        let table = self.table.as_mut()?;
        let way = *table.get(handle)?;
        let peer = table.handle_at(way.peer)?;
        let other = table.get(peer)?.state;
        let (mine, other, change) = way.state.after(other, flags);
        for (handle, state) in [(handle, mine), (peer, other)] {
            if let Some(way) = table.get_mut(handle) {
                way.state = state;
            }
        }
        if change.is_some() {
            let timed = if way.marks.has(Marks::INWARD) { peer } else { handle };
            table.set_timeout(timed, mine.timeout(), now);
            // RFC 5382, REQ-5: the end has its whole timeout, however long the connection was silent before.
            table.touch(handle, now);
            if self.tap.is_on() {
                self.tell(timed, now);
            }
        }
        change
    }

    /// Makes room for a session, if some are timed out; looks at a few only. Tells how many ended.
    pub fn make_room(&mut self, timeouts: &Timeouts, now: Time) -> usize {
        let (mut dead, now) = (Vec::new(), tick(now));
        let mut sweep = self.room;
        let Some(table) = self.table.as_mut() else { return 0 };
        let done = table.sweep(&mut sweep, LOOKED_AT_FOR_ROOM, |key, way| {
            if !way.marks.has(Marks::INWARD) {
                dead.push(*key);
            }
            SweepAction::Keep
        });
        self.room = if done.done { Sweep::default() } else { sweep };
        let mut ended = 0;
        for key in dead {
            if let Some(handle) = self.find(key).filter(|h| self.is_timed_out(*h, timeouts, now)) {
                ended += usize::from(self.remove(handle).is_some());
            }
        }
        ended
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
        self.each(now, |record| {
            if goes(&record) {
                all.push(record);
            }
            true
        });
        // They go on elsewhere.
        self.quietly(|sessions| all.iter().filter(|gone| sessions.end(gone.session.inside_key())).count());
        all
    }

    /// Does something that neither collectors nor another router hear of.
    pub(crate) fn quietly<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let (is_listed, tap) = (std::mem::take(&mut self.is_listed), std::mem::take(&mut self.tap));
        let done = change(self);
        (self.is_listed, self.tap) = (is_listed, tap);
        done
    }

    /// Takes in a session that another thread had. One whose tuples were given out meanwhile is lost.
    pub fn take_in(&mut self, record: &Record, now: Tick) {
        let at = Time(now.0.saturating_mul(TICK));
        let made = self.quietly(|sessions| sessions.create(record.session, at));
        let Ok(handle) = made else { return };
        let Some(peer) = self.peer(handle) else { return };
        let Some(table) = self.table.as_mut() else { return };
        let (inside, outside) = record.states;
        let last = Tick(now.0.saturating_sub(record.age.into()));
        if let Some(way) = table.get_mut(handle) {
            way.state = inside;
            way.set_counts(record.packets, record.bytes);
        }
        if let Some(way) = table.get_mut(peer) {
            way.state = outside;
        }
        table.touch(peer, last);
        table.set_timeout(handle, inside.timeout(), last);
    }

    /// When a session may end.
    #[inline(always)]
    pub fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Ends some whose time is over; tells how many.
    pub fn expire(&mut self, timeouts: &Timeouts, now: Time) -> usize {
        let (now, mut most, mut ended) = (tick(now), TIMERS_AT_ONCE, 0);
        while let Some(handle) = self.table.as_mut().and_then(|table| table.next_due(now, &mut most)) {
            let (age, way) = (self.age(handle, now).unwrap_or(0), self.way(handle));
            let longest = way.map_or(0, |way| ticks_of(timeouts, way.timeout())) + LINGER * TICKS as u32;
            if age >= longest {
                ended += usize::from(self.remove(handle).is_some());
            } else if let Some(table) = self.table.as_mut() {
                // Packets came the other way.
                table.restart(handle, Tick(now.0.saturating_sub(u64::from(age))));
            }
        }
        ended
    }

    /// Timeouts are others now.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        let Some(table) = self.table.as_mut() else { return };
        for (timeout, seconds) in classes(timeouts) {
            if let Err(e) = table.change_timeout(timeout, ticks(seconds + LINGER)) {
                tracing::warn!("a timeout of sessions stays as it was: {e}");
            }
        }
        let mut sweep = Sweep::default();
        table.sweep(&mut sweep, usize::MAX, |_, way| {
            if way.marks.has(Marks::INWARD) { SweepAction::Keep } else { SweepAction::Rearm }
        });
    }

    /// Shows sessions to `judge`, which says of each whether it stays; tells how many ended.
    pub fn retain(&mut self, mut judge: impl FnMut(&Session) -> bool) -> usize {
        let mut gone = Vec::new();
        self.each(Tick(0), |record| {
            if !judge(&record.session) {
                gone.push(record.session.inside_key());
            }
            true
        });
        gone.iter().filter(|key| self.end(**key)).count()
    }

    /// Shows sessions, until `look` says that it has seen enough.
    pub fn each(&self, now: Tick, mut look: impl FnMut(Record) -> bool) {
        let Some(table) = self.table.as_ref() else { return };
        for index in 0..u32::try_from(table.places()).unwrap_or(u32::MAX) {
            if let Some(record) = self.record(index, now)
                && !look(record)
            {
                return;
            }
        }
    }

    /// The session whose inside direction has this number.
    pub fn record(&self, index: u32, now: Tick) -> Option<Record> {
        let table = self.table.as_ref()?;
        let handle = table.handle_at(index)?;
        let (key, way) = (table.key(handle)?, table.get(handle)?);
        if way.marks.has(Marks::INWARD) {
            return None;
        }
        let peer = table.handle_at(way.peer)?;
        let (other_key, other) = (table.key(peer)?, table.get(peer)?);
        let session = Session {
            inside: tuple_of(key),
            inside_table: key.table().number(),
            outside: way.to(),
            outside_table: other_key.table().number(),
            protocol: key.protocol(),
            marks: way.marks.0,
        };
        Some(Record {
            session,
            states: (way.state, other.state),
            packets: u64::from(way.packets) + u64::from(other.packets),
            bytes: way.bytes() + other.bytes(),
            age: self.age(handle, now)?,
            index,
        })
    }
}

fn refusal(error: shoal_flow::InsertError) -> Refusal {
    match error {
        shoal_flow::InsertError::Exists(_) => Refusal::Taken,
        _ => Refusal::Full,
    }
}

/// Seconds as ticks.
pub fn ticks(seconds: u32) -> u32 {
    seconds.min(LONGEST + LINGER).saturating_mul(TICKS as u32)
}

fn classes(timeouts: Timeouts) -> [(shoal_flow::Timeout, u32); 5] {
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
    [
        (UDP_TIMEOUT, udp),
        (ESTABLISHED, tcp_established),
        (TRANSITORY, tcp_transitory),
        (ICMP_TIMEOUT, icmp),
        (OTHER, udp),
    ]
}
