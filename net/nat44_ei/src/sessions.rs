//! What a worker keeps: its sessions, found by a host's address and port or by those that stand for them.

use shoal_flow::{
    FlowTable, Handle, Ip4Flow, Search, Settings, Sweep, SweepAction, TableError, TableId, Tick, Timeout,
};
use shoal_graph::clock::Time;
use shoal_nat::Random;
use shoal_nat::tuple::{ICMP, TCP};

use crate::blocks::{BlockEvent, Blocks};
use crate::config::{Algorithm, AtUserLimit, Config, Timeouts};
use crate::resting::Resting;
use crate::session_direction::{Marks, SessionDirection};
use crate::users::{Host, User, Users};

/// Ticks of a second.
pub const TICKS: u64 = 8;
/// Nanoseconds of a tick.
const TICK: u64 = 1_000_000_000 / TICKS;
/// The longest timeout, in seconds.
pub const LONGEST: u32 = Settings::LONGEST_TIMEOUT / TICKS as u32;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;
/// Most events of sessions that are kept until they are reported.
const MOST_EVENTS: usize = 4096;

const UDP_TIMEOUT: Timeout = Timeout::new(0);
const ESTABLISHED: Timeout = Timeout::new(1);
const TRANSITORY: Timeout = Timeout::new(2);
const ICMP_TIMEOUT: Timeout = Timeout::new(3);
/// The entry of the other direction lives as long as its session.
const FOLLOWS: Timeout = Timeout::new(15);

/// The table of sessions.
pub type Table = FlowTable<Ip4Flow, SessionDirection>;
/// A look-up under way.
pub type Query = Search<Ip4Flow>;

/// An address and a port, or the identifier of queries.
pub type Endpoint = (u32, u16);

/// The key of what comes from a host.
#[inline(always)]
pub fn inside_key((address, port): Endpoint, protocol: u8, table: u32) -> Ip4Flow {
    let table = TableId::new(table).unwrap_or_default();
    Ip4Flow::new((address.into(), port), (0.into(), 0), protocol, table)
}

/// The key of what comes to a shared address.
#[inline(always)]
pub fn outside_key((address, port): Endpoint, protocol: u8, table: u32) -> Ip4Flow {
    let table = TableId::new(table).unwrap_or_default();
    Ip4Flow::new((0.into(), 0), (address.into(), port), protocol, table)
}

/// A session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// The host.
    pub inside: Endpoint,
    /// Its table.
    pub inside_table: u32,
    /// What stands for it.
    pub outside: Endpoint,
    /// The table of the answers.
    pub outside_table: u32,
    /// TCP, UDP or ICMP.
    pub protocol: u8,
    /// Whether a mapping made it.
    pub is_static: bool,
    /// The remote end of its first packet. Others may use it, too.
    pub remote: Endpoint,
}

impl Session {
    fn inside_key(&self) -> Ip4Flow {
        inside_key(self.inside, self.protocol, self.inside_table)
    }

    fn outside_key(&self) -> Ip4Flow {
        outside_key(self.outside, self.protocol, self.outside_table)
    }

    fn host(&self) -> Host {
        (self.inside.0, self.inside_table)
    }
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A session has one of its ends already.
    Taken,
    /// There are as many sessions as there may be.
    Full,
    /// Its host has as many as it may have.
    UserFull,
    /// There are as many hosts as there may be.
    NoUser,
}

/// A session as it is shown, and as it goes from thread to thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What it is.
    pub session: Session,
    /// Packets of both directions.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Ticks since the last one.
    pub age: u32,
    /// Its number.
    pub index: u32,
    /// The number of its host.
    pub user: u32,
    /// Whether packets went both ways.
    pub is_answered: bool,
}

/// What a thread has to tell.
#[derive(Clone, Copy, Debug)]
pub enum SessionNews {
    /// Something happened to a session.
    Session(Event, Record),
    /// A host has a block of ports, or has it no more.
    Block(BlockEvent),
}

/// What happened to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It began.
    Begins,
    /// It ended.
    Ends,
    /// It has been used.
    Used,
}

/// What a worker keeps.
pub struct Sessions {
    table: Option<Table>,
    /// Hosts.
    pub users: Users,
    /// Numbers that are hard to guess.
    pub random: Random,
    /// Events for logs and for another router.
    pub events: Vec<SessionNews>,
    /// Blocks of ports that hosts have.
    pub blocks: Blocks,
    /// Ports and blocks that were a host's a short while ago.
    pub resting: Resting,
    parcel: Vec<Record>,
}

/// The tick of a moment.
#[inline(always)]
pub fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

fn timeout(protocol: u8, is_answered: bool) -> Timeout {
    match protocol {
        TCP if is_answered => ESTABLISHED,
        TCP => TRANSITORY,
        ICMP => ICMP_TIMEOUT,
        _ => UDP_TIMEOUT,
    }
}

impl Sessions {
    /// For a thread that has none.
    pub fn none() -> Self {
        Sessions {
            table: None,
            users: Users::default(),
            random: Random::default(),
            events: Vec::new(),
            blocks: Blocks::default(),
            resting: Resting::default(),
            parcel: Vec::new(),
        }
    }

    /// Room for so many sessions.
    ///
    /// # Errors
    /// There is no memory.
    pub fn open(&mut self, config: &Config, now: Time) -> Result<(), TableError> {
        self.close();
        self.table = Some(FlowTable::new(Settings::flows(config.sessions.saturating_mul(2)), tick(now))?);
        self.set_timeouts(config.timeouts);
        self.set_algorithm(config.algorithm);
        Ok(())
    }

    /// Ports are chosen so from now on. Hosts have no blocks of ports then.
    pub fn set_algorithm(&mut self, algorithm: Algorithm) {
        self.blocks.set_size(if let Algorithm::Blocks { size, .. } = algorithm { size } else { 0 });
    }

    /// All sessions end.
    pub fn close(&mut self) {
        *self = Sessions { random: std::mem::take(&mut self.random), ..Sessions::none() };
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.len() / 2)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of records are below this.
    pub fn places(&self) -> u32 {
        self.table.as_ref().map_or(0, |table| u32::try_from(table.places()).unwrap_or(u32::MAX))
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
    pub fn way(&self, handle: Handle) -> Option<&SessionDirection> {
        self.table.as_ref()?.get(handle)
    }

    /// The table of an entry's other direction.
    pub fn peer_table(&self, peer: u32) -> Option<u32> {
        let table = self.table.as_ref()?;
        Some(table.key(table.handle_at(peer)?)?.table().number())
    }

    /// The entry of the other direction.
    pub fn peer(&self, handle: Handle) -> Option<Handle> {
        let table = self.table.as_ref()?;
        table.handle_at(table.get(handle)?.peer)
    }

    /// Whether no session has this end outside.
    pub fn is_free(&self, end: Endpoint, protocol: u8, table: u32) -> bool {
        self.find(outside_key(end, protocol, table)).is_none()
    }

    /// Room for a session of a host: its oldest one ends if it has as many as it may have and that is how it was configured.
    ///
    /// # Errors
    /// There is no room.
    pub fn make_room(&mut self, host: Host, config: &Config) -> Result<(), Refusal> {
        if self.len() >= config.sessions as usize {
            return Err(Refusal::Full);
        }
        let Some(user) = self.users.get(host) else {
            let is_full = self.users.len() >= config.users as usize;
            return if is_full { Err(Refusal::NoUser) } else { Ok(()) };
        };
        if user.sessions + user.statics >= config.user_sessions {
            if config.at_user_limit == AtUserLimit::Drop {
                return Err(Refusal::UserFull);
            }
            let oldest = self.users.oldest(host).ok_or(Refusal::Full)?;
            self.end_at(oldest);
        }
        Ok(())
    }

    /// Makes a session; the entry of its inside is named.
    ///
    /// # Errors
    /// One of its ends is another's, or there is no room.
    pub fn create(&mut self, session: Session, now: Time) -> Result<Handle, Refusal> {
        let Session { inside, outside, protocol, is_static, .. } = session;
        let mut marks = if is_static { Marks::STATIC } else { 0 };
        if session.inside_table != session.outside_table {
            marks |= Marks::OTHER_TABLE;
        }
        let there = SessionDirection::new(inside, outside, protocol, marks);
        let back = SessionDirection::new(outside, inside, protocol, marks | Marks::INWARD);
        let now = tick(now);
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let first = timeout(protocol, false);
        let first = table.insert(session.inside_key(), there, first, now).map_err(refusal)?;
        let second = match table.insert(session.outside_key(), back, FOLLOWS, now) {
            Ok(second) => second,
            Err(e) => {
                table.remove(first);
                return Err(refusal(e));
            }
        };
        for (handle, peer) in [(first, second), (second, first)] {
            if let Some(way) = table.get_mut(handle) {
                (way.peer, way.moved) = (peer.index(), now.0 as u32);
            }
        }
        self.users.add(session.host(), first.index(), is_static, session.remote);
        let user = self.users.place(first.index()).user;
        let record =
            Record { session, packets: 0, bytes: 0, age: 0, index: first.index(), user, is_answered: false };
        self.tell(Event::Begins, record);
        if !is_static && let Some(block) = self.blocks.take(session.host(), outside, protocol) {
            self.say(SessionNews::Block(block));
        }
        Ok(first)
    }

    fn tell(&mut self, event: Event, record: Record) {
        self.say(SessionNews::Session(event, record));
    }

    fn say(&mut self, news: SessionNews) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(news);
        }
    }

    /// An entry was used for the first time for a second, or in its direction. `refresh`: ticks after which another router hears
    /// of the session again.
    #[inline(never)]
    pub fn used(&mut self, handle: Handle, refresh: u32, now: Time) {
        let tick = tick(now);
        let Some(table) = self.table.as_mut() else { return };
        let Some(way) = table.get_mut(handle) else { return };
        let is_first = !way.marks.has(Marks::USED);
        way.marks.0 |= Marks::USED;
        way.moved = tick.0 as u32;
        let (peer, is_inward) = (way.peer, way.marks.has(Marks::INWARD));
        let Some(peer) = table.handle_at(peer) else { return };
        let inside = if is_inward { peer } else { handle };
        let is_tcp = table.key(inside).is_some_and(|key| key.protocol() == TCP);
        if is_first && is_tcp && table.get(peer).is_some_and(|way| way.marks.has(Marks::USED)) {
            table.set_timeout(inside, ESTABLISHED, tick);
        }
        self.users.used(inside.index());
        if refresh > 0
            && let Some(place) = self.users.place_mut(inside.index())
            && (tick.0 as u32).wrapping_sub(place.told) >= refresh
        {
            let is_new = place.told == 0;
            place.told = tick.0 as u32;
            if !is_new && let Some(record) = self.record(inside.index(), tick) {
                self.tell(Event::Used, record);
            }
        }
    }

    /// Ends the session of an entry.
    pub fn remove(&mut self, handle: Handle) -> Option<Record> {
        let inside = if self.way(handle)?.marks.has(Marks::INWARD) { self.peer(handle)? } else { handle };
        self.end_at(inside.index())
    }

    fn end_at(&mut self, place: u32) -> Option<Record> {
        let latest = self.table.as_ref()?.latest();
        let record = self.record(place, latest)?;
        let table = self.table.as_mut()?;
        let handle = table.handle_at(place)?;
        let (_, way) = table.remove(handle)?;
        if let Some(peer) = table.handle_at(way.peer) {
            table.remove(peer);
        }
        self.users.remove(place, record.session.is_static);
        self.tell(Event::Ends, record);
        let Session { outside, protocol, is_static, .. } = record.session;
        if !is_static {
            if self.blocks.size() == 0 {
                self.resting.put(outside, protocol, latest);
            } else if let Some(block) = self.blocks.release(record.session.host(), outside, protocol) {
                self.resting.put_block((block.address, block.first), latest);
                self.say(SessionNews::Block(block));
            }
        }
        Some(record)
    }

    /// Ends the session that a key names; whether there was one.
    pub fn end(&mut self, key: Ip4Flow) -> bool {
        self.find(key).and_then(|handle| self.remove(handle)).is_some()
    }

    /// Ticks since the last packet of an entry's session, in either direction.
    fn age(&self, handle: Handle, now: Tick) -> Option<u32> {
        let table = self.table.as_ref()?;
        let peer = table.handle_at(table.get(handle)?.peer)?;
        Some(table.age(handle, now)?.min(table.age(peer, now)?))
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
            let age = self.age(handle, now).unwrap_or(u32::MAX);
            let longest = self.record(handle.index(), now).map_or(0, |record| ticks_of(timeouts, &record));
            if age >= longest {
                ended += usize::from(self.end_at(handle.index()).is_some());
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
        for (timeout, seconds) in [
            (UDP_TIMEOUT, timeouts.udp),
            (ESTABLISHED, timeouts.tcp_established),
            (TRANSITORY, timeouts.tcp_transitory),
            (ICMP_TIMEOUT, timeouts.icmp),
        ] {
            if let Err(e) = table.change_timeout(timeout, seconds.min(LONGEST).saturating_mul(TICKS as u32)) {
                tracing::warn!("a timeout of sessions stays as it was: {e}");
            }
        }
        table.sweep(&mut Sweep::default(), usize::MAX, |_, way| {
            if way.marks.has(Marks::INWARD) { SweepAction::Keep } else { SweepAction::Rearm }
        });
    }

    /// Ends sessions that `stays` does not keep; tells how many.
    pub fn retain(&mut self, mut stays: impl FnMut(&Session) -> bool) -> usize {
        self.take_out(|record| !stays(&record.session)).len()
    }

    /// Takes out the sessions that `goes` says.
    pub fn take_out(&mut self, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let mut all = std::mem::take(&mut self.parcel);
        let now = self.table.as_ref().map_or(Tick(0), FlowTable::latest);
        for place in 0..self.places() {
            if self.record(place, now).is_some_and(|record| goes(&record)) {
                all.extend(self.end_at(place));
            }
        }
        all
    }

    /// Sessions on their way to another thread.
    pub fn parcel(records: Vec<Record>) -> Self {
        Sessions { parcel: records, ..Sessions::none() }
    }

    /// What a parcel has.
    pub fn records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.parcel)
    }

    /// Takes in a session that another thread, or another router, had. One whose port was given out meanwhile is lost.
    pub fn take_in(&mut self, record: &Record, now: Tick) -> Option<Handle> {
        let before = self.events.len();
        let made = self.create(record.session, Time(now.0.saturating_mul(TICK)));
        // It began where it was before.
        self.events.truncate(before);
        let handle = made.ok()?;
        let peer = self.peer(handle)?;
        let table = self.table.as_mut()?;
        let last = Tick(now.0.saturating_sub(record.age.into()));
        for handle in [handle, peer] {
            if let Some(way) = table.get_mut(handle)
                && record.is_answered
            {
                way.marks.0 |= Marks::USED;
            }
        }
        table.get_mut(handle)?.set_counts(record.packets, record.bytes);
        table.touch(peer, last);
        table.set_timeout(handle, timeout(record.session.protocol, record.is_answered), last);
        Some(handle)
    }

    /// Counts of the session with this outside end are at least these, another router says; it is used.
    pub fn refresh(&mut self, session: &Session, packets: u32, bytes: u64, now: Tick) {
        let Some(handle) = self.find(session.outside_key()).and_then(|outside| self.peer(outside)) else {
            return;
        };
        let Some(table) = self.table.as_mut() else { return };
        if let Some(way) = table.get_mut(handle) {
            way.set_counts(packets, bytes);
        }
        table.touch(handle, now);
        self.users.used(handle.index());
    }

    /// Sessions of a host.
    pub fn of(&self, host: Host) -> Option<User> {
        self.users.get(host).copied()
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
        let (host, port) = key.source();
        let session = Session {
            inside: (host.to_bits(), port),
            inside_table: key.table().number(),
            outside: way.to(),
            outside_table: other_key.table().number(),
            protocol: key.protocol(),
            is_static: way.marks.has(Marks::STATIC),
            remote: self.users.place(index).remote,
        };
        Some(Record {
            session,
            packets: way.packets.wrapping_add(other.packets),
            bytes: way.bytes() + other.bytes(),
            age: self.age(handle, now)?,
            index,
            user: self.users.place(index).user,
            is_answered: way.marks.has(Marks::USED) && other.marks.has(Marks::USED),
        })
    }
}

fn refusal(error: shoal_flow::InsertError) -> Refusal {
    match error {
        shoal_flow::InsertError::Exists(_) => Refusal::Taken,
        _ => Refusal::Full,
    }
}

/// Ticks a session may be silent.
pub fn ticks_of(timeouts: &Timeouts, record: &Record) -> u32 {
    let seconds = match timeout(record.session.protocol, record.is_answered) {
        ESTABLISHED => timeouts.tcp_established,
        TRANSITORY => timeouts.tcp_transitory,
        ICMP_TIMEOUT => timeouts.icmp,
        _ => timeouts.udp,
    };
    seconds.min(LONGEST).saturating_mul(TICKS as u32)
}
