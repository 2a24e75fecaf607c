//! What a worker keeps: sessions of hosts behind tunnels, found from either side.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_flow::{Flow, FlowTable, Handle, Settings, TableError, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_nat::Random;
use shoal_nat::tuple::{ICMP, TCP};

use crate::config::{Config, range};

mod entry;

use entry::{Entry, inside_of, is_outside};
pub use entry::{Key, inside_key, outside_key};

/// Ticks of a second.
const TICKS: u64 = 8;
const TICK: u64 = 1_000_000_000 / TICKS;
/// Sessions of a worker: as VPP's, which has no limit beside the one for each B4.
pub const MOST: u32 = 1 << 20;
/// Sessions of a B4, as VPP's.
pub const MOST_OF_B4: u32 = 1000;
/// Ports tried of one address, and addresses.
const TRIES: usize = 24;
const ADDRESSES: usize = 4;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;

const UDP_TIMEOUT: Timeout = Timeout::new(0);
const TCP_TIMEOUT: Timeout = Timeout::new(1);
const CLOSING_TIMEOUT: Timeout = Timeout::new(2);
const ICMP_TIMEOUT: Timeout = Timeout::new(3);
/// The entry of the other direction lives as long as its session.
const FOLLOWS: Timeout = Timeout::new(15);

/// Seconds of each. RFC 4787, REQ-5; RFC 5382, REQ-5; RFC 5508, REQ-1.
const TIMEOUTS: [(Timeout, u32); 4] =
    [(UDP_TIMEOUT, 300), (TCP_TIMEOUT, 7440), (CLOSING_TIMEOUT, 240), (ICMP_TIMEOUT, 60)];

/// A host's side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inside {
    /// The other end of the tunnel.
    pub b4: Ipv6Addr,
    /// The host's address, which means something behind its B4 only.
    pub address: Ipv4Addr,
    /// Its port, or the identifier of its queries.
    pub port: u16,
    /// TCP, UDP or ICMP.
    pub protocol: u8,
}

/// The side that the Internet sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outside {
    /// The shared address.
    pub address: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// TCP, UDP or ICMP.
    pub protocol: u8,
}

/// Who sends a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The host.
    Host,
    /// The Internet.
    Internet,
}

impl Side {
    /// Both of them.
    const BOTH: u8 = 3;

    const fn bit(self) -> u8 {
        match self {
            Side::Host => 1,
            Side::Internet => 2,
        }
    }
}

/// What a session is looked for by, and where the search is.
pub type Query = shoal_flow::Search<Key>;

/// A session as it is shown, and as it goes from thread to thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The host.
    pub inside: Inside,
    /// What stands for it.
    pub outside: Outside,
    /// Packets of both directions.
    pub packets: u64,
    /// Bytes of both directions.
    pub bytes: u64,
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The worker or the B4 has as many as it may have.
    Full,
    /// No port is free, or there is no shared address.
    OutOfPorts,
}

/// What a worker keeps.
pub struct Sessions {
    table: Option<FlowTable<Key, Entry>>,
    of_b4: HashMap<Ipv6Addr, u32>,
    random: Random,
    parcel: Vec<Record>,
}

/// The tick of a moment.
fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

fn timeout(protocol: u8) -> Timeout {
    match protocol {
        TCP => TCP_TIMEOUT,
        ICMP => ICMP_TIMEOUT,
        _ => UDP_TIMEOUT,
    }
}

impl Sessions {
    /// For a thread that has none.
    pub fn none() -> Self {
        Sessions { table: None, of_b4: HashMap::new(), random: Random::default(), parcel: Vec::new() }
    }

    /// Room for sessions.
    ///
    /// # Errors
    /// There is no memory.
    pub fn open(&mut self, now: Time) -> Result<(), TableError> {
        if self.table.is_some() {
            return Ok(());
        }
        let mut settings = Settings::flows(MOST * 2);
        for (timeout, seconds) in TIMEOUTS {
            settings = settings.timeout(timeout, seconds * TICKS as u32);
        }
        self.table = Some(FlowTable::new(settings, tick(now))?);
        Ok(())
    }

    /// All sessions end.
    pub fn close(&mut self) {
        *self = Sessions::none();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.len() / 2)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many B4s have some.
    pub fn b4s(&self) -> usize {
        self.of_b4.len()
    }

    fn handle(&self, key: Key) -> Option<Handle> {
        self.table.as_ref()?.handle_of(key)
    }

    /// Begins a search that has its key; one of no key finds nothing.
    #[inline(always)]
    pub fn begin(&self, query: &mut Query) {
        if let Some(table) = &self.table
            && *query.key() != Key::default()
        {
            table.begin(query);
        }
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
            && let Some(entry) = table.peek(query)
        {
            table.prefetch_at(entry.peer);
        }
    }

    /// The B4 of the session that a search of the Internet's packets finds.
    pub fn b4_of(&self, query: &Query) -> Option<Ipv6Addr> {
        let table = self.table.as_ref()?;
        let session = table.handle_at(table.peek(query)?.peer)?;
        Some(inside_of(table.key(session)?).b4)
    }

    /// What stands for a host, if it has a session. A packet of so many bytes, found by a search that may be for it, uses it.
    #[inline(always)]
    pub fn out(
        &mut self,
        query: Option<&Query>,
        inside: &Inside,
        (bytes, flags): (usize, u8),
        now: Time,
    ) -> Option<Outside> {
        let flow = self.table.as_mut()?.find_by(query, inside_key(inside))?;
        let (address, port) = flow.value().outside;
        if let Some(handle) = used(flow, Side::Host, (bytes, flags), tick(now)) {
            self.has_ended(handle, now);
        }
        Some(Outside { address, port, protocol: inside.protocol })
    }

    /// The host that a shared address and port stand for, likewise.
    #[inline(always)]
    pub fn into(
        &mut self,
        query: Option<&Query>,
        outside: Outside,
        (bytes, flags): (usize, u8),
        now: Time,
    ) -> Option<Inside> {
        let table = self.table.as_mut()?;
        let session = table.find_by(query, outside_key(outside))?.value().peer;
        let flow = table.flow_of(session)?;
        let inside = inside_of(flow.key());
        if let Some(handle) = used(flow, Side::Internet, (bytes, flags), tick(now)) {
            self.has_ended(handle, now);
        }
        Some(inside)
    }

    /// RFC 5382, REQ-5: when both directions have ended the session has the shorter timeout.
    #[cold]
    #[inline(never)]
    fn has_ended(&mut self, handle: Handle, now: Time) {
        if let Some(table) = self.table.as_mut() {
            table.set_timeout(handle, CLOSING_TIMEOUT, tick(now));
            table.touch(handle, tick(now));
        }
    }

    /// What stands for a host, without a packet of the session: one about it came.
    pub fn peek_out(&self, inside: &Inside) -> Option<Outside> {
        let (address, port) = self.table.as_ref()?.get(self.handle(inside_key(inside))?)?.outside;
        Some(Outside { address, port, protocol: inside.protocol })
    }

    /// The same for the other direction.
    pub fn peek_into(&self, outside: Outside) -> Option<Inside> {
        let table = self.table.as_ref()?;
        let session = table.get(self.handle(outside_key(outside))?)?.peer;
        table.key(table.handle_at(session)?).map(inside_of)
    }

    /// Gives a host a port of a shared address.
    ///
    /// # Errors
    /// There is no room.
    pub fn create(
        &mut self,
        inside: &Inside,
        config: &Config,
        thread: usize,
        now: Time,
    ) -> Result<Outside, Refusal> {
        if self.of_b4.get(&inside.b4).is_some_and(|count| *count >= MOST_OF_B4) {
            return Err(Refusal::Full);
        }
        let (first, count) = range(config.nth(thread), config.workers.len());
        // RFC 4787, REQ-2: a subscriber keeps its address.
        let bits = inside.b4.to_bits();
        let start = ((bits ^ (bits >> 64)) as usize) % config.pool.len().max(1);
        let addresses = config.pool.iter().cycle().skip(start).take(config.pool.len().min(ADDRESSES));
        for address in addresses {
            for _ in 0..TRIES {
                let port = first.wrapping_add(self.random.below(count) as u16);
                let outside = Outside { address: *address, port, protocol: inside.protocol };
                if self.handle(outside_key(outside)).is_none() {
                    return self.insert(inside, outside, now).map(|_| outside);
                }
            }
        }
        Err(Refusal::OutOfPorts)
    }

    fn insert(&mut self, inside: &Inside, outside: Outside, now: Time) -> Result<Handle, Refusal> {
        let now = tick(now);
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let session = Entry::new(outside, 0);
        let session = table.insert(inside_key(inside), session, timeout(inside.protocol), now);
        let session = session.map_err(|_| Refusal::Full)?;
        let way = Entry::new(outside, session.index());
        let Ok(way) = table.insert(outside_key(outside), way, FOLLOWS, now) else {
            table.remove(session);
            return Err(Refusal::Full);
        };
        if let Some(entry) = table.get_mut(session) {
            entry.peer = way.index();
        }
        *self.of_b4.entry(inside.b4).or_default() += 1;
        Ok(session)
    }

    fn remove(&mut self, session: Handle) -> Option<Record> {
        let table = self.table.as_mut()?;
        let (key, entry) = table.remove(session)?;
        if let Some(way) = table.handle_at(entry.peer) {
            table.remove(way);
        }
        let record = record(&key, &entry);
        let b4 = record.inside.b4;
        if let Some(count) = self.of_b4.get_mut(&b4) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_b4.remove(&b4);
            }
        }
        Some(record)
    }

    /// When a session may end.
    pub fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Ends sessions whose time is over, a few at once.
    pub fn expire(&mut self, now: Time) -> Vec<Record> {
        let (now, mut most, mut gone) = (tick(now), TIMERS_AT_ONCE, Vec::new());
        while let Some(session) = self.table.as_mut().and_then(|table| table.next_due(now, &mut most)) {
            gone.extend(self.remove(session));
        }
        gone
    }

    /// Ends the sessions that `goes` says; their records.
    pub fn take_out(&mut self, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let mut all = std::mem::take(&mut self.parcel);
        let gone: Vec<Record> = self.records().into_iter().filter(|record| goes(record)).collect();
        for record in &gone {
            if let Some(handle) = self.handle(inside_key(&record.inside)) {
                self.remove(handle);
            }
        }
        all.extend(gone);
        all
    }

    /// Sessions on their way to another thread.
    pub fn parcel(records: Vec<Record>) -> Self {
        Sessions { parcel: records, ..Sessions::none() }
    }

    /// Takes in what another thread had. A session whose port was given out meanwhile is lost.
    pub fn take_in(&mut self, mut other: Sessions, now: Time) {
        for record in std::mem::take(&mut other.parcel) {
            if self.handle(outside_key(record.outside)).is_some() {
                continue;
            }
            let Ok(handle) = self.insert(&record.inside, record.outside, now) else { continue };
            if let Some(entry) = self.table.as_mut().and_then(|table| table.get_mut(handle)) {
                entry.set_packets(record.packets);
                entry.bytes = record.bytes;
            }
        }
    }

    /// All of them.
    pub fn records(&self) -> Vec<Record> {
        let Some(table) = self.table.as_ref() else { return Vec::new() };
        let of = |index| {
            let handle = table.handle_at(index)?;
            let (key, entry) = (table.key(handle)?, table.get(handle)?);
            (!is_outside(key)).then(|| record(key, entry))
        };
        (0..u32::try_from(table.places()).unwrap_or(u32::MAX)).filter_map(of).collect()
    }
}

/// A packet of a side uses a session; the session's handle if both sides have ended it by that.
#[inline(always)]
fn used(
    mut flow: Flow<'_, Key, Entry>,
    from: Side,
    (bytes, flags): (usize, u8),
    now: Tick,
) -> Option<Handle> {
    flow.touch(now);
    let protocol = inside_of(flow.key()).protocol;
    flow.value_mut().takes(from, protocol, bytes, flags).then(|| flow.handle())
}

fn record(key: &Key, entry: &Entry) -> Record {
    let (inside, (address, port)) = (inside_of(key), entry.outside);
    let outside = Outside { address, port, protocol: inside.protocol };
    Record { inside, outside, packets: entry.packets(), bytes: entry.bytes }
}
