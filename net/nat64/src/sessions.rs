//! What a worker keeps: bindings of hosts (RFC 6146's BIB) and sessions, found from either side.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_flow::{Flow, FlowTable, Handle, Settings, TableError, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_nat::Random;
use shoal_nat::tuple::{ICMP, TCP};
use shoal_nat_state::sync::Tap;

use crate::config::{Config, Inside, Limits, Outside, Timeouts};
use crate::tcp::{Side, State};

mod beginning;
mod entry;
mod moves;
mod sync;

use entry::{Entry, inside_key, inside_of, outside_key, protocol_of};
pub use entry::{Key, from_host_key, from_internet_key, remote_of, shared_of};
pub use sync::SyncedSession;

/// Ticks of a second.
const TICKS: u64 = 8;
const TICK: u64 = 1_000_000_000 / TICKS;
/// The longest timeout, in seconds.
pub const LONGEST: u32 = Settings::LONGEST_TIMEOUT / TICKS as u32;
/// Events that wait to be told.
const MOST_EVENTS: usize = 4096;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;

const UDP_TIMEOUT: Timeout = Timeout::new(0);
const OPEN_TIMEOUT: Timeout = Timeout::new(1);
const TRANSITORY_TIMEOUT: Timeout = Timeout::new(2);
const ICMP_TIMEOUT: Timeout = Timeout::new(3);
/// A binding lives as long as it has sessions, and what is found from the other side as long as what it leads to.
const FOLLOWS: Timeout = Timeout::new(15);

/// A place on the Internet: address and port.
pub type Remote = (Ipv4Addr, u16);

/// What a session is looked for by, and where the search is.
pub type Query = shoal_flow::Search<Key>;

/// A session as it is shown, and as it goes from thread to thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The host.
    pub inside: Inside,
    /// What stands for it.
    pub outside: Outside,
    /// The remote end.
    pub remote: Remote,
    /// Of TCP.
    pub state: State,
}

/// A binding as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bound {
    /// The host.
    pub inside: Inside,
    /// What stands for it.
    pub outside: Outside,
    /// Whether an operator made it.
    pub is_static: bool,
    /// How many sessions use it.
    pub sessions: u32,
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The worker has as many as it may have.
    Full,
    /// It has as many bindings as it may have.
    FullOfBindings,
    /// No port is free, or there is no shared address.
    OutOfPorts,
    /// Another router begins sessions.
    Standby,
}

/// What a worker keeps.
pub struct Sessions {
    table: Option<FlowTable<Key, Entry>>,
    bindings: u32,
    count: u32,
    limits: Limits,
    /// The shared address of each host that has bindings, and how many.
    hosts: HashMap<(Ipv6Addr, u32), (Ipv4Addr, u32)>,
    random: Random,
    parcel: Vec<Record>,
    /// Static ones among the bindings.
    statics: u32,
    /// Bindings that began (`true`) or ended, until they are told. Those of an operator are not among them.
    pub events: Vec<(bool, Inside, Outside)>,
    /// What another router hears of sessions.
    pub(crate) tap: Tap<SyncedSession>,
}

/// The tick of a moment.
fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

/// Bindings and sessions have an entry for each side.
fn most_entries(Limits { bindings, sessions }: Limits) -> u32 {
    bindings.saturating_add(sessions).saturating_mul(2)
}

fn timeout(protocol: u8, state: State) -> Timeout {
    match protocol {
        TCP if state.is_open() => OPEN_TIMEOUT,
        TCP => TRANSITORY_TIMEOUT,
        ICMP => ICMP_TIMEOUT,
        _ => UDP_TIMEOUT,
    }
}

/// A packet uses a session, of TCP with such flags; its new timeout if that is another, and whether the packet keeps it.
#[inline(always)]
fn used(
    mut flow: Flow<'_, Key, Entry>,
    (from, flags): (Side, u8),
    now: Tick,
) -> Option<(Handle, Timeout, bool)> {
    let protocol = protocol_of(flow.key()[3]);
    let handle = flow.handle();
    let Entry::Session { state, .. } = flow.value_mut() else { return None };
    let old = *state;
    // RFC 6146, 3.5.2.2: once both have ended it, packets keep it no longer.
    let touches = old != State::BothFin;
    if protocol == TCP {
        *state = old.after(from, flags);
        let new = timeout(protocol, *state);
        if new != timeout(protocol, old) {
            return Some((handle, new, touches));
        }
    }
    if touches {
        flow.touch(now);
    }
    None
}

impl Sessions {
    /// For a thread that has none.
    pub fn none() -> Self {
        Sessions {
            table: None,
            bindings: 0,
            count: 0,
            limits: Limits { bindings: 0, sessions: 0 },
            hosts: HashMap::new(),
            random: Random::default(),
            parcel: Vec::new(),
            statics: 0,
            events: Vec::new(),
            tap: Tap::default(),
        }
    }

    /// Room for sessions.
    ///
    /// # Errors
    /// There is no memory.
    pub fn open(&mut self, config: &Config, now: Time) -> Result<(), TableError> {
        self.table = Some(FlowTable::new(Settings::flows(most_entries(config.limits)), tick(now))?);
        self.limits = config.limits;
        self.set_timeouts(&config.timeouts)
    }

    /// Sessions live so long from now on.
    ///
    /// # Errors
    /// One is longer than [`LONGEST`].
    pub fn set_timeouts(&mut self, timeouts: &Timeouts) -> Result<(), TableError> {
        let Some(table) = self.table.as_mut() else { return Ok(()) };
        for (timeout, seconds) in [
            (UDP_TIMEOUT, timeouts.udp),
            (OPEN_TIMEOUT, timeouts.tcp_established),
            (TRANSITORY_TIMEOUT, timeouts.tcp_transitory),
            (ICMP_TIMEOUT, timeouts.icmp),
        ] {
            table.change_timeout(timeout, seconds.saturating_mul(TICKS as u32))?;
        }
        Ok(())
    }

    /// All sessions end.
    pub fn close(&mut self) {
        *self = Sessions { tap: std::mem::take(&mut self.tap), ..Sessions::none() };
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bindings there are, without those of an operator.
    pub fn bindings(&self) -> usize {
        self.bindings.saturating_sub(self.statics) as usize
    }

    fn say(&mut self, event: (bool, Inside, Outside)) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(event);
        }
    }

    fn place_of_inside(&self, inside: &Inside) -> Option<u32> {
        Some(self.table.as_ref()?.handle_of(inside_key(inside))?.index())
    }

    fn place_of_outside(&self, outside: Outside) -> Option<u32> {
        let table = self.table.as_ref()?;
        match table.get(table.handle_of(outside_key(outside))?)? {
            Entry::Outside(place) => Some(*place),
            _ => None,
        }
    }

    /// What a place holds, and by what key.
    fn entry_at(&self, place: u32) -> Option<(Handle, &Key, &Entry)> {
        let table = self.table.as_ref()?;
        let handle = table.handle_at(place)?;
        Some((handle, table.key(handle)?, table.get(handle)?))
    }

    fn inside_at(&self, place: u32) -> Option<Inside> {
        Some(self.bound_at(place)?.inside)
    }

    fn outside_at(&self, place: u32) -> Option<Outside> {
        Some(self.bound_at(place)?.outside)
    }

    /// What stands for a host, whatever it speaks with: for errors about its packets.
    pub fn peek_inside(&self, inside: &Inside) -> Option<Outside> {
        self.outside_at(self.place_of_inside(inside)?)
    }

    /// The host that a shared address and port stand for.
    pub fn peek_outside(&self, outside: Outside) -> Option<Inside> {
        self.inside_at(self.place_of_outside(outside)?)
    }

    /// Begins to look for the session of a key.
    #[inline(always)]
    pub fn begin_search(&self, key: Key) -> Query {
        self.table.as_ref().map_or_else(Query::default, |table| table.search(key))
    }

    /// Goes on: asks memory for the session, of the Internet's packets for what leads to it.
    #[inline(always)]
    pub fn seek(&self, query: &mut Query) {
        if let Some(table) = &self.table {
            table.seek_one(query);
        }
    }

    /// Asks memory for the session of a packet of the Internet.
    #[inline(always)]
    pub fn fetch(&self, query: &Query) {
        if let Some(table) = &self.table
            && let Some(Entry::Reply { session, .. }) = table.peek(query)
        {
            table.prefetch_at(*session);
        }
    }

    /// The host of the session that a search of the Internet's packets finds.
    pub fn host_of(&self, query: &Query) -> Option<Ipv6Addr> {
        let Some(Entry::Reply { session, .. }) = self.table.as_ref()?.peek(query) else { return None };
        Some(inside_of(self.entry_at(*session)?.1).address)
    }

    /// What stands for a host in a session that there is. The packet uses it.
    pub fn of_host(&mut self, inside: &Inside, remote: Remote, flags: u8, now: Time) -> Option<Outside> {
        let (address, port) = self.from_host(None, from_host_key(inside, remote), flags, now)?;
        Some(Outside { address, port, protocol: inside.protocol })
    }

    /// The host of a session that there is. The packet uses it.
    pub fn of_internet(&mut self, outside: Outside, remote: Remote, flags: u8, now: Time) -> Option<Inside> {
        self.from_internet(None, from_internet_key(outside, remote), flags, now)
    }

    /// The same as [`of_host`](Self::of_host) by a key, and with a search that may be for it: address and port.
    #[inline(always)]
    pub fn from_host(&mut self, query: Option<&Query>, key: Key, flags: u8, now: Time) -> Option<Remote> {
        let flow = self.table.as_mut()?.find_by(query, key)?;
        let Entry::Session { outside, .. } = *flow.value() else { return None };
        if let Some(change) = used(flow, (Side::V6, flags), tick(now)) {
            self.opened_or_closed(change, tick(now));
        }
        Some(outside)
    }

    /// The same as [`of_internet`](Self::of_internet) by a key, and with a search that may be for it.
    #[inline(always)]
    pub fn from_internet(&mut self, query: Option<&Query>, key: Key, flags: u8, now: Time) -> Option<Inside> {
        let table = self.table.as_mut()?;
        let Entry::Reply { session, .. } = *table.find_by(query, key)?.value() else { return None };
        let flow = table.flow_of(session)?;
        let inside = inside_of(flow.key());
        if let Some(change) = used(flow, (Side::V4, flags), tick(now)) {
            self.opened_or_closed(change, tick(now));
        }
        Some(inside)
    }

    /// A session has another timeout.
    #[cold]
    #[inline(never)]
    fn opened_or_closed(&mut self, (handle, timeout, touches): (Handle, Timeout, bool), now: Tick) {
        if let Some(table) = self.table.as_mut() {
            table.set_timeout(handle, timeout, now);
            if touches {
                table.touch(handle, now);
            }
        }
        if self.tap.is_on() {
            self.tell(handle, now);
        }
    }

    /// Changes how many sessions a binding has.
    fn with_sessions(&mut self, place: u32, change: impl FnOnce(&mut u32)) {
        if let Some(mut flow) = self.table.as_mut().and_then(|table| table.flow_of(place))
            && let Entry::Binding { sessions, .. } = flow.value_mut()
        {
            change(sessions);
        }
    }

    /// Takes an entry away, and the one of the other side.
    fn remove(&mut self, handle: Handle) -> Option<(Key, Entry)> {
        let table = self.table.as_mut()?;
        let (key, entry) = table.remove(handle)?;
        if let Entry::Binding { other, .. } | Entry::Session { other, .. } = entry
            && let Some(other) = table.handle_at(other)
        {
            table.remove(other);
        }
        Some((key, entry))
    }

    /// A binding without sessions goes.
    fn let_go(&mut self, place: u32) {
        let Some(Bound { inside, outside, is_static, sessions: 0 }) = self.bound_at(place) else { return };
        if let Some(handle) = self.table.as_ref().and_then(|table| table.handle_at(place)) {
            self.remove(handle);
        }
        self.bindings = self.bindings.saturating_sub(1);
        if is_static {
            self.statics = self.statics.saturating_sub(1);
        } else {
            self.say((false, inside, outside));
        }
        let host = (inside.address, inside.table);
        if let Some((_, count)) = self.hosts.get_mut(&host) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// When a session may end.
    pub fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Ends sessions whose time is over, a few at once.
    pub fn expire(&mut self, now: Time) -> Vec<Record> {
        let (now, mut most, mut gone) = (tick(now), TIMERS_AT_ONCE, Vec::new());
        while let Some(handle) = self.table.as_mut().and_then(|table| table.next_due(now, &mut most)) {
            gone.extend(self.end(handle));
        }
        gone
    }

    fn end(&mut self, handle: Handle) -> Option<Record> {
        if self.tap.is_on() {
            self.tell_end(handle);
        }
        let (key, entry) = self.remove(handle)?;
        let Entry::Session { binding, .. } = entry else { return None };
        self.count = self.count.saturating_sub(1);
        self.with_sessions(binding, |sessions| *sessions = sessions.saturating_sub(1));
        self.let_go(binding);
        record(&key, &entry)
    }

    fn places(&self) -> std::ops::Range<u32> {
        0..self.table.as_ref().map_or(0, |table| u32::try_from(table.places()).unwrap_or(u32::MAX))
    }

    fn session_at(&self, place: u32) -> Option<(Handle, Record)> {
        let (handle, key, entry) = self.entry_at(place)?;
        Some((handle, record(key, entry)?))
    }

    fn bound_at(&self, place: u32) -> Option<Bound> {
        let (_, key, entry) = self.entry_at(place)?;
        let Entry::Binding { outside: (address, port), is_static, sessions, .. } = *entry else {
            return None;
        };
        let inside = inside_of(key);
        let outside = Outside { address, port, protocol: inside.protocol };
        Some(Bound { inside, outside, is_static, sessions })
    }

    /// All sessions.
    pub fn records(&self) -> Vec<Record> {
        self.places().filter_map(|place| Some(self.session_at(place)?.1)).collect()
    }

    /// All bindings.
    pub fn bound(&self) -> Vec<Bound> {
        self.places().filter_map(|place| self.bound_at(place)).collect()
    }
}

/// The session of an entry, if it is one.
fn record(key: &Key, entry: &Entry) -> Option<Record> {
    let Entry::Session { outside: (address, port), state, .. } = *entry else { return None };
    let inside = inside_of(key);
    let outside = Outside { address, port, protocol: inside.protocol };
    Some(Record { inside, outside, remote: remote_of(key), state })
}
