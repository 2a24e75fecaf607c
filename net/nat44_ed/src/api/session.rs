//! Sessions, and the hosts that have them.

use std::net::Ipv4Addr;

use shoal_message::{Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::{EXT_HOST_VALID, NatConfigFlags, STATIC, TWICE_NAT, all, ip, nat};
use crate::Nat44;
use crate::session_direction::Marks;
use crate::sessions::{Record, TICKS};

/// Ends a session.
#[derive(Message)]
#[message(request)]
pub struct Nat44DelSession {
    pub address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub vrf_id: u32,
    pub flags: NatConfigFlags,
    pub ext_host_address: Ipv4Addr,
    pub ext_host_port: u16,
}

impl Request for Nat44DelSession {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (host, other) = ((self.address, self.port), (self.ext_host_address, self.ext_host_port));
        Ok(nat(call)?.del_session(host, other, self.protocol, self.vrf_id)?)
    }
}

/// Asks for hosts that have sessions.
#[derive(Message)]
#[message(request, details = Nat44UserDetails)]
pub struct Nat44UserDump {}

/// A host that has sessions.
#[derive(Message)]
#[message(reply)]
pub struct Nat44UserDetails {
    pub vrf_id: u32,
    pub ip_address: Ipv4Addr,
    pub nsessions: u32,
    pub nstaticsessions: u32,
}

impl Dump for Nat44UserDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44UserDetails> + 'static {
        all(call, |nat| nat.users().unwrap_or_default()).map(|user| Nat44UserDetails {
            vrf_id: user.vrf,
            ip_address: user.address,
            nsessions: user.sessions,
            nstaticsessions: user.statics,
        })
    }
}

/// Sessions of a host, and how long each may be silent.
fn sessions_of(nat: &Nat44, host: Ipv4Addr) -> Vec<(Record, u32)> {
    let host = host.to_bits();
    let found = nat.sessions(move |record| record.session.inside.src == host).unwrap_or_default();
    found.into_iter().map(|(_, record)| (record, nat.timeout_of(&record))).collect()
}

fn flags(record: &Record) -> NatConfigFlags {
    let marks = Marks(record.session.marks);
    let twice = if marks.has(Marks::TWICE) { TWICE_NAT } else { 0 };
    let fixed = if marks.has(Marks::STATIC) { STATIC } else { 0 };
    NatConfigFlags(EXT_HOST_VALID | twice | fixed)
}

fn seconds(record: &Record) -> u64 {
    u64::from(record.age) / TICKS
}

/// What all versions of the details begin with.
macro_rules! details {
    ($name:ident, $record:ident, $now:expr, { $($more:tt)* }) => {{
        let (inside, outside) = ($record.session.inside, $record.session.outside);
        let is_twice = Marks($record.session.marks).has(Marks::TWICE);
        $name {
            outside_ip_address: ip(outside.src),
            outside_port: outside.sport,
            inside_ip_address: ip(inside.src),
            inside_port: inside.sport,
            protocol: $record.session.protocol.into(),
            flags: flags(&$record),
            last_heard: $now.saturating_sub(seconds(&$record)),
            total_bytes: $record.bytes,
            total_pkts: $record.packets as u32,
            ext_host_address: ip(outside.dst),
            ext_host_port: outside.dport,
            ext_host_nat_address: ip(if is_twice { inside.dst } else { 0 }),
            ext_host_nat_port: if is_twice { inside.dport } else { 0 },
            $($more)*
        }
    }};
}

/// Asks for the sessions of a host.
#[derive(Message)]
#[message(request, details = Nat44UserSessionDetails)]
pub struct Nat44UserSessionDump {
    pub ip_address: Ipv4Addr,
    /// Not looked at.
    pub vrf_id: u32,
}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct Nat44UserSessionDetails {
    pub outside_ip_address: Ipv4Addr,
    pub outside_port: u16,
    pub inside_ip_address: Ipv4Addr,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: NatConfigFlags,
    pub last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ipv4Addr,
    pub ext_host_port: u16,
    pub ext_host_nat_address: Ipv4Addr,
    pub ext_host_nat_port: u16,
}

impl Dump for Nat44UserSessionDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44UserSessionDetails> + 'static {
        let host = self.ip_address;
        let (now, found) = now_and(call, host);
        found.map(move |(record, _)| details!(Nat44UserSessionDetails, record, now, {}))
    }
}

/// Seconds since the start, and the sessions of a host.
fn now_and(call: &Call, host: Ipv4Addr) -> (u64, std::vec::IntoIter<(Record, u32)>) {
    let now = nat(call).map_or(0, |nat| nat.seconds());
    (now, all(call, |nat| sessions_of(nat, host)))
}

/// Asks for the sessions of a host.
#[derive(Message)]
#[message(request, details = Nat44UserSessionV2Details)]
pub struct Nat44UserSessionV2Dump {
    pub ip_address: Ipv4Addr,
    /// Not looked at.
    pub vrf_id: u32,
}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct Nat44UserSessionV2Details {
    pub outside_ip_address: Ipv4Addr,
    pub outside_port: u16,
    pub inside_ip_address: Ipv4Addr,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: NatConfigFlags,
    pub last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ipv4Addr,
    pub ext_host_port: u16,
    pub ext_host_nat_address: Ipv4Addr,
    pub ext_host_nat_port: u16,
    pub is_timed_out: bool,
}

impl Dump for Nat44UserSessionV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44UserSessionV2Details> + 'static {
        let (now, found) = now_and(call, self.ip_address);
        found.map(move |(record, most)| {
            details!(Nat44UserSessionV2Details, record, now, { is_timed_out: record.age >= most })
        })
    }
}

/// Asks for the sessions of a host.
#[derive(Message)]
#[message(request, details = Nat44UserSessionV3Details)]
pub struct Nat44UserSessionV3Dump {
    pub ip_address: Ipv4Addr,
    /// Not looked at.
    pub vrf_id: u32,
}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct Nat44UserSessionV3Details {
    pub outside_ip_address: Ipv4Addr,
    pub outside_port: u16,
    pub inside_ip_address: Ipv4Addr,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: NatConfigFlags,
    pub last_heard: u64,
    pub time_since_last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ipv4Addr,
    pub ext_host_port: u16,
    pub ext_host_nat_address: Ipv4Addr,
    pub ext_host_nat_port: u16,
    pub is_timed_out: bool,
}

impl Dump for Nat44UserSessionV3Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44UserSessionV3Details> + 'static {
        let (now, found) = now_and(call, self.ip_address);
        found.map(move |(record, most)| {
            let since = seconds(&record);
            details!(Nat44UserSessionV3Details, record, now, {
                time_since_last_heard: since,
                is_timed_out: record.age >= most,
            })
        })
    }
}
