//! What a worker keeps: sessions of hosts, found from either side.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use shoal_flow::{FlowTable, Handle, Settings, TableError, Tick, Timeout};
use shoal_graph::clock::Time;
use shoal_nat::tuple::{ICMP, TCP};

use crate::config::{Share, Timeouts};

/// Ticks of a second.
const TICKS: u64 = 8;
const TICK: u64 = 1_000_000_000 / TICKS;
/// The longest timeout, in seconds.
pub const LONGEST: u32 = Settings::LONGEST_TIMEOUT / TICKS as u32;
/// Sessions of a worker.
const MOST: u32 = 1 << 22;
/// Sessions of a host, as VPP's.
pub const MOST_OF_HOST: u32 = 1000;
/// Timers looked at in one go.
const TIMERS_AT_ONCE: usize = 128;

const UDP_TIMEOUT: Timeout = Timeout::new(0);
const OPEN_TIMEOUT: Timeout = Timeout::new(1);
const TRANSITORY_TIMEOUT: Timeout = Timeout::new(2);
const ICMP_TIMEOUT: Timeout = Timeout::new(3);
/// The entry of the other direction lives as long as its session.
const FOLLOWS: Timeout = Timeout::new(15);

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// How far a session is, with VPP's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum State {
    /// Nothing is known of it.
    #[default]
    Unknown = 0,
    /// UDP.
    Udp = 1,
    /// The host asked for a connection.
    SynSent = 2,
    /// It is open.
    Established = 3,
    /// The host has ended its direction.
    FinWait = 4,
    /// The other end has.
    CloseWait = 5,
    /// Both have, the host first.
    Closing = 6,
    /// Both have, the host last.
    LastAck = 7,
    /// It was reset.
    Closed = 8,
    /// ICMP.
    Icmp = 9,
}

impl State {
    /// As VPP shows it.
    pub const fn name(self) -> &'static str {
        match self {
            State::Unknown => "unknown",
            State::Udp => "udp-active",
            State::SynSent => "tcp-syn-sent",
            State::Established => "tcp-established",
            State::FinWait => "tcp-fin-wait",
            State::CloseWait => "tcp-close-wait",
            State::Closing => "tcp-closing",
            State::LastAck => "tcp-last-ack",
            State::Closed => "tcp-closed",
            State::Icmp => "icmp-active",
        }
    }

    /// Of a session that begins.
    fn first(protocol: u8) -> State {
        match protocol {
            TCP => State::Unknown,
            ICMP => State::Icmp,
            _ => State::Udp,
        }
    }

    /// After a packet of a connection; `None`: that was the last one.
    fn after(self, from_host: bool, flags: u8) -> Option<State> {
        let has = |flag| flags & flag != 0;
        Some(match self {
            State::Udp | State::Icmp => self,
            _ if has(RST) => State::Closed,
            _ if from_host && has(SYN) => State::SynSent,
            State::SynSent | State::Unknown | State::Closed if from_host && has(ACK) && !has(FIN) => {
                State::Established
            }
            State::Established if has(FIN) => {
                if from_host {
                    State::FinWait
                } else {
                    State::CloseWait
                }
            }
            State::FinWait if !from_host && has(FIN) => State::Closing,
            State::CloseWait if from_host && has(FIN) => State::LastAck,
            State::Closing if from_host && has(ACK) => return None,
            State::LastAck if !from_host && has(ACK) => return None,
            _ => self,
        })
    }

    fn timeout(self) -> Timeout {
        match self {
            State::Udp => UDP_TIMEOUT,
            State::Icmp => ICMP_TIMEOUT,
            State::Established => OPEN_TIMEOUT,
            _ => TRANSITORY_TIMEOUT,
        }
    }
}

/// A session as it is shown, and as it goes from thread to thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// The host.
    pub host: Ipv4Addr,
    /// Its port, or the identifier of its queries.
    pub port: u16,
    /// The remote address and port; the port is 0 for queries.
    pub remote: (Ipv4Addr, u16),
    /// TCP, UDP or ICMP.
    pub protocol: u8,
    /// What stands for the host.
    pub shared: (Ipv4Addr, u16),
}

/// A session with its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Who and where.
    pub flow: Flow,
    /// How far it is.
    pub state: State,
    /// Seconds after which it ends, without a packet.
    pub expires: u32,
}

type Key = [u64; 2];

fn key(address: Ipv4Addr, port: u16, (remote, far): (Ipv4Addr, u16), protocol: u8, is_outside: bool) -> Key {
    let addresses = u64::from(address.to_bits()) << 32 | u64::from(remote.to_bits());
    let ports = u64::from(port) << 48 | u64::from(far) << 32;
    [addresses, ports | u64::from(protocol) << 8 | u64::from(is_outside)]
}

impl Flow {
    fn inside_key(&self) -> Key {
        key(self.host, self.port, self.remote, self.protocol, false)
    }

    fn outside_key(&self) -> Key {
        key(self.shared.0, self.shared.1, self.remote, self.protocol, true)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: Flow,
    state: State,
    is_outside: bool,
    /// The other direction's place.
    peer: u32,
}

/// Why a session was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The worker has as many as it may have.
    Full,
    /// The host has.
    HostFull,
    /// All ports of the host speak with that remote already.
    OutOfPorts,
}

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From a host.
    In2out,
    /// To a host.
    Out2in,
}

/// What a worker keeps.
pub struct Sessions {
    table: Option<FlowTable<Key, Entry>>,
    of_host: HashMap<Ipv4Addr, u32>,
    timeouts: Timeouts,
    parcel: Vec<Record>,
}

fn tick(now: Time) -> Tick {
    Tick(now.0 / TICK)
}

impl Sessions {
    /// For a thread that has none.
    pub fn none() -> Self {
        Sessions { table: None, of_host: HashMap::new(), timeouts: Timeouts::default(), parcel: Vec::new() }
    }

    /// Room for sessions.
    ///
    /// # Errors
    /// There is no memory.
    pub fn open(&mut self, timeouts: Timeouts, now: Time) -> Result<(), TableError> {
        self.table = Some(FlowTable::new(Settings::flows(MOST * 2), tick(now))?);
        self.set_timeouts(timeouts)
    }

    /// Sessions live so long from now on.
    ///
    /// # Errors
    /// One is longer than [`LONGEST`].
    pub fn set_timeouts(&mut self, timeouts: Timeouts) -> Result<(), TableError> {
        let Some(table) = self.table.as_mut() else { return Ok(()) };
        for (timeout, seconds) in [
            (UDP_TIMEOUT, timeouts.udp),
            (OPEN_TIMEOUT, timeouts.tcp_established),
            (TRANSITORY_TIMEOUT, timeouts.tcp_transitory),
            (ICMP_TIMEOUT, timeouts.icmp),
        ] {
            table.change_timeout(timeout, seconds.saturating_mul(TICKS as u32))?;
        }
        self.timeouts = timeouts;
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

    fn find(
        &self,
        way: Direction,
        address: Ipv4Addr,
        port: u16,
        remote: (Ipv4Addr, u16),
        protocol: u8,
    ) -> Option<Handle> {
        self.table.as_ref()?.handle_of(key(address, port, remote, protocol, way == Direction::Out2in))
    }

    /// The session of a packet about a session: one of an ICMP error.
    pub fn peek(
        &self,
        way: Direction,
        (address, port): (Ipv4Addr, u16),
        remote: (Ipv4Addr, u16),
        protocol: u8,
    ) -> Option<Flow> {
        let handle = self.find(way, address, port, remote, protocol)?;
        Some(self.table.as_ref()?.get(handle)?.flow)
    }

    /// The session of a packet, if there is one; the packet uses it.
    pub fn used(
        &mut self,
        way: Direction,
        (address, port): (Ipv4Addr, u16),
        (remote, protocol, flags): ((Ipv4Addr, u16), u8, u8),
        now: Time,
    ) -> Option<Flow> {
        let handle = self.find(way, address, port, remote, protocol)?;
        let now = tick(now);
        let table = self.table.as_mut()?;
        let entry = *table.get(handle)?;
        let peer = table.handle_at(entry.peer)?;
        let Some(state) = entry.state.after(way == Direction::In2out, flags) else {
            self.remove(handle);
            return Some(entry.flow);
        };
        for handle in [handle, peer] {
            if let Some(entry) = table.get_mut(handle) {
                entry.state = state;
            }
        }
        let inside = if entry.is_outside { peer } else { handle };
        if state.timeout() != entry.state.timeout() {
            table.set_timeout(inside, state.timeout(), now);
        }
        table.touch(inside, now);
        Some(entry.flow)
    }

    /// Begins a session of a host, by one of its ports: that of the same place as its own, or the next that is free.
    ///
    /// # Errors
    /// There is no room.
    pub fn begin(
        &mut self,
        (host, port): (Ipv4Addr, u16),
        (remote, protocol): ((Ipv4Addr, u16), u8),
        share: &Share,
        now: Time,
    ) -> Result<(), Refusal> {
        if self.of_host.get(&host).is_some_and(|count| *count >= MOST_OF_HOST) {
            return Err(Refusal::HostFull);
        }
        let ports = u32::from(share.ports).max(1);
        for nth in 0..ports {
            let out = share.first.wrapping_add(((u32::from(port) + nth) % ports) as u16);
            if self.find(Direction::Out2in, share.address, out, remote, protocol).is_none() {
                let flow = Flow { host, port, remote, protocol, shared: (share.address, out) };
                return self.insert(flow, State::first(protocol), now).map(drop).ok_or(Refusal::Full);
            }
        }
        Err(Refusal::OutOfPorts)
    }

    fn insert(&mut self, flow: Flow, state: State, now: Time) -> Option<Handle> {
        let now = tick(now);
        let table = self.table.as_mut()?;
        let entry = Entry { flow, state, is_outside: false, peer: 0 };
        let here = table.insert(flow.inside_key(), entry, state.timeout(), now).ok()?;
        let back = Entry { is_outside: true, peer: here.index(), ..entry };
        let Ok(back) = table.insert(flow.outside_key(), back, FOLLOWS, now) else {
            table.remove(here);
            return None;
        };
        table.get_mut(here)?.peer = back.index();
        *self.of_host.entry(flow.host).or_default() += 1;
        Some(here)
    }

    fn remove(&mut self, handle: Handle) -> Option<Flow> {
        let table = self.table.as_mut()?;
        let (_, entry) = table.remove(handle)?;
        if let Some(peer) = table.handle_at(entry.peer) {
            table.remove(peer);
        }
        if let Some(count) = self.of_host.get_mut(&entry.flow.host) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_host.remove(&entry.flow.host);
            }
        }
        Some(entry.flow)
    }

    /// When a session may end.
    pub fn due(&self) -> Option<Time> {
        let Tick(tick) = self.table.as_ref()?.next_expiry()?;
        Some(Time(tick.saturating_mul(TICK)))
    }

    /// Ends sessions whose time is over, a few at once; how many.
    pub fn expire(&mut self, now: Time) -> usize {
        let (now, mut most, mut gone) = (tick(now), TIMERS_AT_ONCE, 0);
        while let Some(handle) = self.table.as_mut().and_then(|table| table.next_due(now, &mut most)) {
            gone += usize::from(self.remove(handle).is_some());
        }
        gone
    }

    /// Ends the sessions that `goes` says; their records.
    pub fn take_out(&mut self, now: Time, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let mut all = std::mem::take(&mut self.parcel);
        for record in self.records(now).into_iter().filter(|record| goes(record)) {
            if let Some(handle) =
                self.table.as_ref().and_then(|table| table.handle_of(record.flow.inside_key()))
            {
                self.remove(handle);
                all.push(record);
            }
        }
        all
    }

    /// Sessions on their way to another thread.
    pub fn parcel(records: Vec<Record>) -> Self {
        Sessions { parcel: records, ..Sessions::none() }
    }

    /// Takes in what another thread had.
    pub fn take_in(&mut self, mut other: Sessions, now: Time) {
        for record in std::mem::take(&mut other.parcel) {
            let Flow { shared, remote, protocol, .. } = record.flow;
            if self.find(Direction::Out2in, shared.0, shared.1, remote, protocol).is_none() {
                self.insert(record.flow, record.state, now);
            }
        }
    }

    fn seconds(&self, timeout: Timeout) -> u32 {
        match timeout {
            UDP_TIMEOUT => self.timeouts.udp,
            OPEN_TIMEOUT => self.timeouts.tcp_established,
            ICMP_TIMEOUT => self.timeouts.icmp,
            _ => self.timeouts.tcp_transitory,
        }
    }

    /// All of them.
    pub fn records(&self, now: Time) -> Vec<Record> {
        let Some(table) = self.table.as_ref() else { return Vec::new() };
        let now = tick(now);
        let of = |index| {
            let handle = table.handle_at(index)?;
            let Entry { flow, state, is_outside, .. } = *table.get(handle)?;
            let age = table.age(handle, now).unwrap_or(0) / TICKS as u32;
            let expires = self.seconds(state.timeout()).saturating_sub(age);
            (!is_outside).then_some(Record { flow, state, expires })
        };
        (0..u32::try_from(table.places()).unwrap_or(u32::MAX)).filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(packets: &[(bool, u8)]) -> Option<State> {
        packets.iter().try_fold(State::Unknown, |state, (from_host, flags)| state.after(*from_host, *flags))
    }

    #[test]
    fn a_connection_ends_with_the_last_packet_of_either_order() {
        let open = [(true, SYN), (false, SYN | ACK), (true, ACK)];
        assert_eq!(after(&open), Some(State::Established));
        let with = |more: &[(bool, u8)]| after(&[&open, more].concat());
        // The host first: half of it goes on.
        assert_eq!(with(&[(true, FIN | ACK), (false, ACK), (true, ACK)]), Some(State::FinWait));
        assert_eq!(with(&[(true, FIN | ACK), (false, FIN | ACK)]), Some(State::Closing));
        assert_eq!(with(&[(true, FIN | ACK), (false, ACK), (false, FIN | ACK), (true, ACK)]), None);
        // The other end first.
        assert_eq!(with(&[(false, FIN | ACK), (true, ACK), (true, FIN | ACK)]), Some(State::LastAck));
        assert_eq!(with(&[(false, FIN | ACK), (true, ACK), (true, FIN | ACK), (false, ACK)]), None);
        assert_eq!(with(&[(false, RST)]), Some(State::Closed));
        assert_eq!(with(&[(false, RST), (true, ACK)]), Some(State::Established), "a forged reset");
    }
}
