//! What a worker keeps: sessions of hosts behind tunnels, found from either side.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_flow::{FlowTable, Handle, Settings, TableError, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_nat::Random;
use shoal_nat::tuple::{ICMP, TCP};

use crate::config::{Config, range};

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

const FIN: u8 = 1;
const RST: u8 = 4;

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

type Key = [u64; 3];

impl Inside {
    fn key(&self) -> Key {
        let b4 = self.b4.to_bits();
        let low =
            u64::from(self.address.to_bits()) << 32 | u64::from(self.port) << 16 | u64::from(self.protocol);
        [(b4 >> 64) as u64, b4 as u64, low]
    }
}

impl Outside {
    /// No packet of a tunnel has a key like this: the highest bit of the second half of the last word tells them apart.
    fn key(self) -> Key {
        let low =
            u64::from(self.address.to_bits()) << 32 | u64::from(self.port) << 16 | u64::from(self.protocol);
        [0, 0, low | 1 << 15]
    }
}

/// What is kept of one direction.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The B4.
    b4: Ipv6Addr,
    inside: (Ipv4Addr, u16),
    outside: (Ipv4Addr, u16),
    protocol: u8,
    /// Directions that have ended: 1 the host's, 2 the other's.
    ended: u8,
    is_outside: bool,
    /// The other direction's place.
    peer: u32,
    packets: u64,
    bytes: u64,
}

impl Entry {
    fn inside(&self) -> Inside {
        let (address, port) = self.inside;
        Inside { b4: self.b4, address, port, protocol: self.protocol }
    }

    fn outside(&self) -> Outside {
        let (address, port) = self.outside;
        Outside { address, port, protocol: self.protocol }
    }
}

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

fn seconds(timeout: Timeout) -> u32 {
    TIMEOUTS.iter().find(|(of, _)| *of == timeout).map_or(0, |(_, seconds)| *seconds)
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

    /// What stands for a host, if it has a session. A packet of so many bytes uses it.
    pub fn out(&mut self, inside: &Inside, bytes: usize, flags: u8, now: Time) -> Option<Outside> {
        let handle = self.handle(inside.key())?;
        self.used(handle, bytes, flags, now).map(|entry| entry.outside())
    }

    /// The host that a shared address and port stand for.
    pub fn into(&mut self, outside: Outside, bytes: usize, flags: u8, now: Time) -> Option<Inside> {
        let handle = self.handle(outside.key())?;
        self.used(handle, bytes, flags, now).map(|entry| entry.inside())
    }

    /// The same without a packet of the session: one about it came.
    pub fn peek_out(&self, inside: &Inside) -> Option<Outside> {
        let table = self.table.as_ref()?;
        Some(table.get(table.handle_of(inside.key())?)?.outside())
    }

    /// The same for the other direction.
    pub fn peek_into(&self, outside: Outside) -> Option<Inside> {
        let table = self.table.as_ref()?;
        Some(table.get(table.handle_of(outside.key())?)?.inside())
    }

    fn used(&mut self, handle: Handle, bytes: usize, flags: u8, now: Time) -> Option<Entry> {
        let now = tick(now);
        let table = self.table.as_mut()?;
        table.touch(handle, now);
        let entry = table.get_mut(handle)?;
        entry.packets += 1;
        entry.bytes += bytes as u64;
        let found = *entry;
        if found.protocol == TCP && flags & (FIN | RST) != 0 {
            let ended = if flags & RST != 0 { 3 } else { 1 << u8::from(found.is_outside) };
            self.end_direction(handle, ended, now);
        }
        Some(found)
    }

    /// RFC 5382, REQ-5: when both directions have ended the session has the shorter timeout.
    fn end_direction(&mut self, handle: Handle, ended: u8, now: Tick) {
        let Some(table) = self.table.as_mut() else { return };
        let peer = table.get(handle).and_then(|entry| table.handle_at(entry.peer));
        let mut all = ended;
        for handle in [Some(handle), peer].into_iter().flatten() {
            if let Some(entry) = table.get_mut(handle) {
                all |= entry.ended;
                entry.ended = all;
            }
        }
        if all == 3 {
            for handle in [Some(handle), peer].into_iter().flatten() {
                if table.get(handle).is_some_and(|entry| !entry.is_outside) {
                    table.set_timeout(handle, CLOSING_TIMEOUT, now);
                    table.touch(handle, now);
                }
            }
        }
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
                if self.handle(outside.key()).is_none() {
                    return self.insert(inside, outside, now).map(|_| outside);
                }
            }
        }
        Err(Refusal::OutOfPorts)
    }

    fn insert(&mut self, inside: &Inside, outside: Outside, now: Time) -> Result<Handle, Refusal> {
        let now = tick(now);
        let table = self.table.as_mut().ok_or(Refusal::Full)?;
        let entry = Entry {
            b4: inside.b4,
            inside: (inside.address, inside.port),
            outside: (outside.address, outside.port),
            protocol: inside.protocol,
            ended: 0,
            is_outside: false,
            peer: 0,
            packets: 0,
            bytes: 0,
        };
        let full = |_| Refusal::Full;
        let there = table.insert(inside.key(), entry, timeout(inside.protocol), now).map_err(full)?;
        let back = Entry { is_outside: true, ..entry };
        let Ok(back) = table.insert(outside.key(), back, FOLLOWS, now) else {
            table.remove(there);
            return Err(Refusal::Full);
        };
        for (handle, peer) in [(there, back), (back, there)] {
            if let Some(entry) = table.get_mut(handle) {
                entry.peer = peer.index();
            }
        }
        *self.of_b4.entry(inside.b4).or_default() += 1;
        Ok(there)
    }

    fn remove(&mut self, handle: Handle) -> Option<Record> {
        let table = self.table.as_mut()?;
        let (_, mine) = table.remove(handle)?;
        let other = table.handle_at(mine.peer).and_then(|peer| table.remove(peer)).map(|(_, other)| other);
        if let Some(count) = self.of_b4.get_mut(&mine.b4) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_b4.remove(&mine.b4);
            }
        }
        Some(record(&mine, other.as_ref()))
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
            let Some(table) = self.table.as_mut() else { break };
            let Some(entry) = table.get(handle).copied() else { continue };
            let peer = table.handle_at(entry.peer).and_then(|peer| table.age(peer, now));
            let age = table.age(handle, now).unwrap_or(0).min(peer.unwrap_or(u32::MAX));
            let of = if entry.ended == 3 { CLOSING_TIMEOUT } else { timeout(entry.protocol) };
            if age >= seconds(of) * TICKS as u32 {
                gone.extend(self.remove(handle));
            } else {
                // Packets came the other way.
                table.restart(handle, Tick(now.0.saturating_sub(u64::from(age))));
            }
        }
        gone
    }

    /// Ends the sessions that `goes` says; their records.
    pub fn take_out(&mut self, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let mut all = std::mem::take(&mut self.parcel);
        let gone: Vec<Record> = self.records().into_iter().filter(|record| goes(record)).collect();
        for record in &gone {
            if let Some(handle) = self.handle(record.inside.key()) {
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
            if self.handle(record.outside.key()).is_some() {
                continue;
            }
            let Ok(handle) = self.insert(&record.inside, record.outside, now) else { continue };
            if let Some(entry) = self.table.as_mut().and_then(|table| table.get_mut(handle)) {
                (entry.packets, entry.bytes) = (record.packets, record.bytes);
            }
        }
    }

    /// All of them.
    pub fn records(&self) -> Vec<Record> {
        let Some(table) = self.table.as_ref() else { return Vec::new() };
        let of = |index| {
            let entry = table.get(table.handle_at(index)?)?;
            let other = table.handle_at(entry.peer).and_then(|peer| table.get(peer));
            (!entry.is_outside).then(|| record(entry, other))
        };
        (0..u32::try_from(table.places()).unwrap_or(u32::MAX)).filter_map(of).collect()
    }
}

fn record(mine: &Entry, other: Option<&Entry>) -> Record {
    let of = |value: fn(&Entry) -> u64| value(mine) + other.map_or(0, value);
    Record {
        inside: mine.inside(),
        outside: mine.outside(),
        packets: of(|entry| entry.packets),
        bytes: of(|entry| entry.bytes),
    }
}
