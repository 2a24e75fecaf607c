//! Sessions, and the hosts that have them.

use std::net::Ipv4Addr;

use shoal_message::{Message, Retval};
use shoal_module::api::{Call, Dump, Request};

use super::{Nat44EiConfigFlags, all, nat};
use crate::sessions::{Record, TICKS};

/// Ends a session.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiDelSession {
    pub address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub vrf_id: u32,
    pub flags: Nat44EiConfigFlags,
    /// Not looked at: a session has many remote ends.
    pub ext_host_address: Ipv4Addr,
    /// Likewise.
    pub ext_host_port: u16,
}

impl Request for Nat44EiDelSession {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let is_inside = self.flags.has(Nat44EiConfigFlags::INSIDE);
        Ok(nat(call)?.del_session((self.address, self.port), is_inside, self.protocol, self.vrf_id)?)
    }
}

/// Ends all sessions of a host.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiDelUser {
    pub ip_address: Ipv4Addr,
    /// The forwarding table's index.
    pub fib_index: u32,
}

impl Request for Nat44EiDelUser {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(nat(call)?.del_user(self.ip_address, self.fib_index)?)
    }
}

/// Asks for hosts that have sessions.
#[derive(Message)]
#[message(request, details = Nat44EiUserDetails)]
pub struct Nat44EiUserDump {}

/// A host that has sessions.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiUserDetails {
    pub vrf_id: u32,
    pub ip_address: Ipv4Addr,
    pub nsessions: u32,
    pub nstaticsessions: u32,
}

impl Dump for Nat44EiUserDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiUserDetails> + 'static {
        all(call, |nat| nat.users().unwrap_or_default()).map(|user| Nat44EiUserDetails {
            vrf_id: user.vrf,
            ip_address: user.address,
            nsessions: user.sessions,
            nstaticsessions: user.statics,
        })
    }
}

fn flags(record: &Record) -> Nat44EiConfigFlags {
    Nat44EiConfigFlags(if record.session.is_static { Nat44EiConfigFlags::STATIC } else { 0 })
}

fn seconds(record: &Record) -> u64 {
    u64::from(record.age) / TICKS
}

/// Seconds since the start, and the sessions of a host.
fn now_and(call: &Call, host: Ipv4Addr, vrf: u32) -> (u64, std::vec::IntoIter<Record>) {
    let now = nat(call).map_or(0, |nat| nat.seconds());
    (now, all(call, |nat| nat.sessions_of(host, super::vrf(vrf)).unwrap_or_default()))
}

/// What both versions of the details have.
macro_rules! details {
    ($name:ident, $record:ident, $now:expr, { $($more:tt)* }) => {{
        let session = $record.session;
        let (outside, inside, remote) = (session.outside, session.inside, session.remote);
        $name {
            outside_ip_address: outside.0.into(),
            outside_port: outside.1,
            inside_ip_address: inside.0.into(),
            inside_port: inside.1,
            protocol: session.protocol.into(),
            flags: flags(&$record),
            last_heard: $now.saturating_sub(seconds(&$record)),
            total_bytes: $record.bytes,
            total_pkts: $record.packets,
            ext_host_address: remote.0.into(),
            ext_host_port: remote.1,
            $($more)*
        }
    }};
}

/// Asks for the sessions of a host.
#[derive(Message)]
#[message(request, details = Nat44EiUserSessionDetails)]
pub struct Nat44EiUserSessionDump {
    pub ip_address: Ipv4Addr,
    pub vrf_id: u32,
}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiUserSessionDetails {
    pub outside_ip_address: Ipv4Addr,
    pub outside_port: u16,
    pub inside_ip_address: Ipv4Addr,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: Nat44EiConfigFlags,
    pub last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ipv4Addr,
    pub ext_host_port: u16,
}

impl Dump for Nat44EiUserSessionDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiUserSessionDetails> + 'static {
        let (now, found) = now_and(call, self.ip_address, self.vrf_id);
        found.map(move |record| details!(Nat44EiUserSessionDetails, record, now, {}))
    }
}

/// Asks for the sessions of a host.
#[derive(Message)]
#[message(request, details = Nat44EiUserSessionV2Details)]
pub struct Nat44EiUserSessionV2Dump {
    pub ip_address: Ipv4Addr,
    pub vrf_id: u32,
}

/// A session.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiUserSessionV2Details {
    pub outside_ip_address: Ipv4Addr,
    pub outside_port: u16,
    pub inside_ip_address: Ipv4Addr,
    pub inside_port: u16,
    pub protocol: u16,
    pub flags: Nat44EiConfigFlags,
    pub last_heard: u64,
    pub time_since_last_heard: u64,
    pub total_bytes: u64,
    pub total_pkts: u32,
    pub ext_host_address: Ipv4Addr,
    pub ext_host_port: u16,
}

impl Dump for Nat44EiUserSessionV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = Nat44EiUserSessionV2Details> + 'static {
        let (now, found) = now_and(call, self.ip_address, self.vrf_id);
        found.map(move |record| {
            let since = seconds(&record);
            details!(Nat44EiUserSessionV2Details, record, now, { time_since_last_heard: since })
        })
    }
}
