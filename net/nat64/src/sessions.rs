//! What a worker keeps: bindings of hosts (RFC 6146's BIB) and sessions, found from either side.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_flow::{FlowTable, Handle, Settings, TableError, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_nat::Random;
use shoal_nat::tuple::{ICMP, TCP};
use shoal_nat_state::sync::Tap;

use crate::config::{Config, Inside, Limits, Outside, Timeouts, has_ports, range};
use crate::tcp::{Side, State};

mod moves;
mod sync;

pub use sync::SyncedSession;

/// Ticks of a second.
const TICKS: u64 = 8;
const TICK: u64 = 1_000_000_000 / TICKS;
/// The longest timeout, in seconds.
pub const LONGEST: u32 = Settings::LONGEST_TIMEOUT / TICKS as u32;
/// Ports tried of one address, at random and then one after the other, and addresses.
const TRIES: u32 = 24;
const IN_ORDER: u32 = 1024;
const ADDRESSES: usize = 4;
/// Events that wait to be told.
const MOST_EVENTS: usize = 4096;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;

const UDP_TIMEOUT: Timeout = Timeout::new(0);
const OPEN_TIMEOUT: Timeout = Timeout::new(1);
const TRANSITORY_TIMEOUT: Timeout = Timeout::new(2);
const ICMP_TIMEOUT: Timeout = Timeout::new(3);
/// A binding lives as long as it has sessions.
const FOLLOWS: Timeout = Timeout::new(15);

/// A place on the Internet: address and port.
pub type Remote = (Ipv4Addr, u16);

type Key = [u64; 3];

/// What a key is of, in its last word.
const OF_INSIDE: u64 = 1;
const OF_OUTSIDE: u64 = 2;
const OF_SESSION: u64 = 3;

fn inside_key(inside: &Inside) -> Key {
    let Inside { address, port, protocol, table } = *inside;
    let bits = address.to_bits();
    let low = u64::from(table) << 32 | u64::from(port) << 16 | u64::from(protocol) << 8 | OF_INSIDE;
    [(bits >> 64) as u64, bits as u64, low]
}

fn outside_key(outside: Outside) -> Key {
    let Outside { address, port, protocol } = outside;
    let low = u64::from(port) << 16 | u64::from(protocol) << 8 | OF_OUTSIDE;
    [0, u64::from(address.to_bits()), low]
}

fn session_key(binding: u32, (address, port): Remote) -> Key {
    [u64::from(binding), u64::from(address.to_bits()), u64::from(port) << 16 | OF_SESSION]
}

/// A binding.
#[derive(Clone, Copy, Debug)]
struct Binding {
    inside: Inside,
    outside: Outside,
    sessions: u32,
    /// The place of the entry by the outside.
    other: u32,
    is_static: bool,
}

/// A session.
#[derive(Clone, Copy, Debug)]
struct Session {
    binding: u32,
    remote: Remote,
    state: State,
    protocol: u8,
    /// The tick of its first packet, as far as ticks of a session are told apart.
    began: u32,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Binding(Binding),
    /// By the outside: the place of the binding.
    Outside(u32),
    Session(Session),
}

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

fn timeout(protocol: u8, state: State) -> Timeout {
    match protocol {
        TCP if state.is_open() => OPEN_TIMEOUT,
        TCP => TRANSITORY_TIMEOUT,
        ICMP => ICMP_TIMEOUT,
        _ => UDP_TIMEOUT,
    }
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
        let Limits { bindings, sessions } = config.limits;
        // A binding has an entry for each side.
        let most = bindings.saturating_mul(2).saturating_add(sessions);
        self.table = Some(FlowTable::new(Settings::flows(most), tick(now))?);
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

    fn binding_at(&self, place: u32) -> Option<(Handle, &Binding)> {
        let table = self.table.as_ref()?;
        let handle = table.handle_at(place)?;
        match table.get(handle)? {
            Entry::Binding(binding) => Some((handle, binding)),
            Entry::Outside(_) | Entry::Session(_) => None,
        }
    }

    fn place_of_inside(&self, inside: &Inside) -> Option<u32> {
        Some(self.table.as_ref()?.handle_of(inside_key(inside))?.index())
    }

    fn place_of_outside(&self, outside: Outside) -> Option<u32> {
        let table = self.table.as_ref()?;
        match table.get(table.handle_of(outside_key(outside))?)? {
            Entry::Outside(place) => Some(*place),
            Entry::Binding(_) | Entry::Session(_) => None,
        }
    }

    fn inside_at(&self, place: u32) -> Option<Inside> {
        Some(self.binding_at(place)?.1.inside)
    }

    fn outside_at(&self, place: u32) -> Option<Outside> {
        Some(self.binding_at(place)?.1.outside)
    }

    /// What stands for a host, whatever it speaks with: for errors about its packets.
    pub fn peek_inside(&self, inside: &Inside) -> Option<Outside> {
        self.outside_at(self.place_of_inside(inside)?)
    }

    /// The host that a shared address and port stand for.
    pub fn peek_outside(&self, outside: Outside) -> Option<Inside> {
        self.inside_at(self.place_of_outside(outside)?)
    }

    /// What stands for a host in a session that there is. The packet uses it.
    pub fn of_host(&mut self, inside: &Inside, remote: Remote, flags: u8, now: Time) -> Option<Outside> {
        let place = self.place_of_inside(inside)?;
        self.used(place, remote, (Side::V6, flags), now)?;
        self.outside_at(place)
    }

    /// The host of a session that there is. The packet uses it.
    pub fn of_internet(&mut self, outside: Outside, remote: Remote, flags: u8, now: Time) -> Option<Inside> {
        let place = self.place_of_outside(outside)?;
        self.used(place, remote, (Side::V4, flags), now)?;
        self.inside_at(place)
    }

    fn used(&mut self, binding: u32, remote: Remote, (from, flags): (Side, u8), now: Time) -> Option<()> {
        let now = tick(now);
        let table = self.table.as_mut()?;
        let handle = table.handle_of(session_key(binding, remote))?;
        let Entry::Session(session) = table.get_mut(handle)? else { return None };
        let old = session.state;
        if session.protocol == TCP {
            session.state = old.after(from, flags);
        }
        let (new, protocol) = (session.state, session.protocol);
        // RFC 6146, 3.5.2.2: once both have ended it, packets keep it no longer.
        let touches = old != State::BothFin;
        if timeout(protocol, old) != timeout(protocol, new) {
            table.set_timeout(handle, timeout(protocol, new), now);
            self.opened_or_closed(handle, touches, now);
        } else if touches {
            table.touch(handle, now);
        }
        Some(())
    }

    /// A session has another timeout.
    #[cold]
    fn opened_or_closed(&mut self, handle: Handle, touches: bool, now: Tick) {
        if touches && let Some(table) = self.table.as_mut() {
            table.touch(handle, now);
        }
        if self.tap.is_on() {
            self.tell(handle, now);
        }
    }

    /// A session that a host begins, with a binding if it has none.
    ///
    /// # Errors
    /// There is no room.
    pub fn begin(
        &mut self,
        (inside, remote): (&Inside, Remote),
        config: &Config,
        thread: usize,
        now: Time,
    ) -> Result<Outside, Refusal> {
        if config.standby {
            return Err(Refusal::Standby);
        }
        let place = match self.place_of_inside(inside) {
            Some(place) => place,
            None => self.bind(inside, config, thread, now)?,
        };
        self.join(place, remote, State::Closed, now)?;
        self.outside_at(place).ok_or(Refusal::Full)
    }

    /// A session that the Internet begins with a host that has a binding, or a static one; `None`: it has neither.
    ///
    /// # Errors
    /// There is no room.
    pub fn accept(
        &mut self,
        (outside, remote): (Outside, Remote),
        config: &Config,
        now: Time,
    ) -> Result<Option<Inside>, Refusal> {
        let place = match (self.place_of_outside(outside), config.by_outside.get(&outside)) {
            (None, None) => return Ok(None),
            _ if config.standby => return Err(Refusal::Standby),
            (Some(place), _) => place,
            (None, Some(inside)) => self.insert_binding(inside, outside, true, now)?,
        };
        self.join(place, remote, State::Closed, now)?;
        Ok(self.inside_at(place))
    }

    /// A binding of a host: the static one, or a port of a shared address.
    fn bind(&mut self, inside: &Inside, config: &Config, thread: usize, now: Time) -> Result<u32, Refusal> {
        if let Some(outside) = config.by_inside.get(inside) {
            return self.insert_binding(inside, *outside, true, now);
        }
        for address in self.addresses(inside, config) {
            if let Some(port) = self.free_port(inside, address, config, thread) {
                let outside = Outside { address, port, protocol: inside.protocol };
                return self.insert_binding(inside, outside, false, now);
            }
        }
        Err(Refusal::OutOfPorts)
    }

    /// Shared addresses to try: RFC 6146, 3.5.1.1 and RFC 4787, REQ-2: a host keeps its address.
    fn addresses(&self, inside: &Inside, config: &Config) -> Vec<Ipv4Addr> {
        let of_table: Vec<Ipv4Addr> = config
            .pool
            .iter()
            .filter(|pool| pool.table == Some(inside.table))
            .map(|pool| pool.address)
            .collect();
        let all =
            || config.pool.iter().filter(|pool| pool.table.is_none()).map(|pool| pool.address).collect();
        let pool: Vec<Ipv4Addr> = if of_table.is_empty() { all() } else { of_table };
        let own = self.hosts.get(&(inside.address, inside.table)).map(|(address, _)| *address);
        let own = own.filter(|own| pool.contains(own));
        let bits = inside.address.to_bits();
        let start = ((bits ^ (bits >> 64)) as usize) % pool.len().max(1);
        let others = pool.iter().copied().cycle().skip(start).take(pool.len().min(ADDRESSES));
        own.into_iter().chain(others.filter(|other| Some(*other) != own)).collect()
    }

    /// A port that nothing has: of the same parity as the host's (RFC 6146, 3.5.1.1), hard to guess (RFC 6056).
    fn free_port(
        &mut self,
        inside: &Inside,
        address: Ipv4Addr,
        config: &Config,
        thread: usize,
    ) -> Option<u16> {
        let free = |sessions: &Self, port: u16| {
            let outside = Outside { address, port, protocol: inside.protocol };
            sessions.place_of_outside(outside).is_none() && config.by_outside.get(&outside).is_none()
        };
        if !has_ports(inside.protocol) {
            return free(self, 0).then_some(0);
        }
        let (first, count) = range(config.nth(thread), config.workers.len());
        // Of the range of this worker, those of the right parity.
        let skew = u32::from((first ^ inside.port) & 1);
        let pairs = (count - skew).div_ceil(2).max(1);
        let port = |nth: u32| first.wrapping_add((skew + 2 * (nth % pairs)) as u16);
        for _ in 0..TRIES {
            let port = port(self.random.below(pairs));
            if free(self, port) {
                return Some(port);
            }
        }
        let start = self.random.below(pairs);
        (0..IN_ORDER.min(pairs)).map(|nth| port(start.wrapping_add(nth))).find(|port| free(self, *port))
    }

    fn insert_binding(
        &mut self,
        inside: &Inside,
        outside: Outside,
        is_static: bool,
        now: Time,
    ) -> Result<u32, Refusal> {
        let now = tick(now);
        if self.bindings >= self.limits.bindings {
            return Err(Refusal::FullOfBindings);
        }
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let binding = Binding { inside: *inside, outside, sessions: 0, other: 0, is_static };
        let full = |_| Refusal::Full;
        let here = table.insert(inside_key(inside), Entry::Binding(binding), FOLLOWS, now).map_err(full)?;
        let Ok(other) = table.insert(outside_key(outside), Entry::Outside(here.index()), FOLLOWS, now) else {
            table.remove(here);
            return Err(Refusal::Full);
        };
        if let Some(Entry::Binding(binding)) = table.get_mut(here) {
            binding.other = other.index();
        }
        self.bindings += 1;
        if is_static {
            self.statics += 1;
        } else {
            self.say((true, *inside, outside));
        }
        self.hosts.entry((inside.address, inside.table)).or_insert((outside.address, 0)).1 += 1;
        Ok(here.index())
    }

    /// A session by a binding; one that there is stays.
    fn join(&mut self, place: u32, remote: Remote, state: State, now: Time) -> Result<(), Refusal> {
        let (_, binding) = self.binding_at(place).ok_or(Refusal::Full)?;
        let protocol = binding.inside.protocol;
        let is_full = self.count >= self.limits.sessions;
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let key = session_key(place, remote);
        if table.handle_of(key).is_some() {
            return Ok(());
        }
        let session = Session { binding: place, remote, state, protocol, began: tick(now).0 as u32 };
        let timeout = timeout(protocol, state);
        let made =
            if is_full { None } else { table.insert(key, Entry::Session(session), timeout, tick(now)).ok() };
        let Some(made) = made else {
            self.let_go(place);
            return Err(Refusal::Full);
        };
        self.count += 1;
        // Of a TCP connection another router hears when it is established.
        if self.tap.is_on() && protocol != TCP {
            self.tap.began(made.to_bits(), now);
        }
        self.with_binding(place, |binding| binding.sessions += 1);
        Ok(())
    }

    fn with_binding(&mut self, place: u32, change: impl FnOnce(&mut Binding)) {
        if let Some(table) = self.table.as_mut()
            && let Some(handle) = table.handle_at(place)
            && let Some(Entry::Binding(binding)) = table.get_mut(handle)
        {
            change(binding);
        }
    }

    /// A binding without sessions goes.
    fn let_go(&mut self, place: u32) {
        let Some((handle, binding)) = self.binding_at(place) else { return };
        let Binding { inside, outside, other, sessions, is_static } = *binding;
        if sessions > 0 {
            return;
        }
        if let Some(table) = self.table.as_mut() {
            table.remove(handle);
            if let Some(other) = table.handle_at(other) {
                table.remove(other);
            }
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
        let Some((_, Entry::Session(session))) = self.table.as_mut()?.remove(handle) else { return None };
        self.count = self.count.saturating_sub(1);
        let record = self.record(&session);
        self.with_binding(session.binding, |binding| binding.sessions = binding.sessions.saturating_sub(1));
        self.let_go(session.binding);
        record
    }

    fn record(&self, session: &Session) -> Option<Record> {
        let (_, binding) = self.binding_at(session.binding)?;
        let Binding { inside, outside, .. } = *binding;
        Some(Record { inside, outside, remote: session.remote, state: session.state })
    }

    fn places(&self) -> std::ops::Range<u32> {
        0..self.table.as_ref().map_or(0, |table| u32::try_from(table.places()).unwrap_or(u32::MAX))
    }

    fn session_at(&self, place: u32) -> Option<(Handle, &Session)> {
        let table = self.table.as_ref()?;
        let handle = table.handle_at(place)?;
        match table.get(handle)? {
            Entry::Session(session) => Some((handle, session)),
            Entry::Binding(_) | Entry::Outside(_) => None,
        }
    }

    /// All sessions.
    pub fn records(&self) -> Vec<Record> {
        self.places().filter_map(|place| self.record(self.session_at(place)?.1)).collect()
    }

    /// All bindings.
    pub fn bound(&self) -> Vec<Bound> {
        let of = |place| {
            let (_, binding) = self.binding_at(place)?;
            let Binding { inside, outside, is_static, sessions, .. } = *binding;
            Some(Bound { inside, outside, is_static, sessions })
        };
        self.places().filter_map(of).collect()
    }
}
