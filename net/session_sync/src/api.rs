//! Messages of Shoal alone; VPP shares sessions of NAT44-EI only, by messages of its own.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use shoal_adj::Family;
use shoal_bfd::{Hop, SessionKey};
use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};
use shoal_nat_state::sync::Role;
use shoal_redundancy::Group;

use crate::{Key, Peer, RoleSource, SessionSync, Timers};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "shoal_session_sync",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<ShoalSessionSyncPeerSet>(),
        ApiMessage::request::<ShoalSessionSyncPeerDel>(),
        ApiMessage::request::<ShoalSessionSyncRoleSet>(),
        ApiMessage::request::<ShoalSessionSyncTimersSet>(),
        ApiMessage::request::<ShoalSessionSyncResync>(),
        ApiMessage::request::<ShoalSessionSyncGet>(),
        ApiMessage::sent::<ShoalSessionSyncGetReply>(),
        ApiMessage::dump::<ShoalSessionSyncFeatureDump>(),
        ApiMessage::sent::<ShoalSessionSyncFeatureDetails>(),
        ApiMessage::dump::<ShoalSessionSyncRefusedDump>(),
        ApiMessage::sent::<ShoalSessionSyncRefusedDetails>(),
    ],
};

fn sync(call: &Call) -> Result<Rc<SessionSync>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// What says which of two routers forwards.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("SHOAL_SESSION_SYNC_ROLE_ACTIVE", 0)]
#[entry("SHOAL_SESSION_SYNC_ROLE_STANDBY", 1)]
#[entry("SHOAL_SESSION_SYNC_ROLE_VRRP", 2)]
#[entry("SHOAL_SESSION_SYNC_ROLE_INTERFACE", 3)]
#[entry("SHOAL_SESSION_SYNC_ROLE_BFD", 4)]
pub struct ShoalSessionSyncRole(pub u32);

/// Names the other router.
#[derive(Message)]
#[message(request)]
pub struct ShoalSessionSyncPeerSet {
    pub peer: IpAddr,
    pub local: IpAddr,
    /// 0: 8790.
    pub port: u16,
    /// What comes from the other router's address is its own: there is no key.
    pub no_authentication: bool,
    /// 32 to 128 hexadecimal digits.
    pub key: String,
}

impl Request for ShoalSessionSyncPeerSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let key = match (self.no_authentication, self.key.as_str()) {
            (true, "") => None,
            (true, _) => return Err(Retval::INVALID_ARGUMENT),
            (false, key) => Some(Key::from_hex(key).ok_or(Retval::INVALID_VALUE)?),
        };
        let port = if self.port == 0 { Peer::PORT } else { self.port };
        let peer = Peer { address: self.peer, local: self.local, port, key };
        Ok(sync(call)?.set_peer(Some(peer))?)
    }
}

/// Says that there is no other router.
#[derive(Message)]
#[message(request)]
pub struct ShoalSessionSyncPeerDel {}

impl Request for ShoalSessionSyncPeerDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(sync(call)?.set_peer(None)?)
    }
}

/// Says which of two routers forwards, or what says it.
#[derive(Message)]
#[message(request)]
pub struct ShoalSessionSyncRoleSet {
    pub role: ShoalSessionSyncRole,
    /// Of VRRP, of the interface, of a BFD session with a neighbour; of one with a router several hops away all bits.
    pub sw_if_index: InterfaceIndex,
    /// Of VRRP.
    pub vr_id: u8,
    /// Of VRRP.
    pub is_ipv6: bool,
    /// Of BFD.
    pub local: IpAddr,
    /// Of BFD.
    pub peer: IpAddr,
}

impl Request for ShoalSessionSyncRoleSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let interface = SwIfIndex(self.sw_if_index.0);
        let family = if self.is_ipv6 { Family::Ip6 } else { Family::Ip4 };
        let hop = if interface == SwIfIndex::NONE { Hop::Multi } else { Hop::Single(interface) };
        let source = match self.role.0 {
            0 => RoleSource::Active,
            1 => RoleSource::Standby,
            2 => RoleSource::Vrrp(Group { interface, number: self.vr_id, family }),
            3 => RoleSource::Interface(interface),
            4 => RoleSource::Bfd(SessionKey { hop, local: self.local, peer: self.peer }),
            _ => return Err(Retval::INVALID_VALUE),
        };
        Ok(sync(call)?.set_role(source)?)
    }
}

/// Sets times.
#[derive(Message)]
#[message(request)]
pub struct ShoalSessionSyncTimersSet {
    pub hello_ms: u32,
    pub dead_ms: u32,
    pub refresh_seconds: u32,
}

impl Request for ShoalSessionSyncTimersSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (hello, dead, refresh) = (self.hello_ms, self.dead_ms, self.refresh_seconds);
        Ok(sync(call)?.set_timers(Timers { hello, dead, refresh })?)
    }
}

/// Has all sessions told once more.
#[derive(Message)]
#[message(request)]
pub struct ShoalSessionSyncResync {}

impl Request for ShoalSessionSyncResync {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(sync(call)?.resync()?)
    }
}

/// Asks what two routers know of each other.
#[derive(Message)]
#[message(request, reply = ShoalSessionSyncGetReply)]
pub struct ShoalSessionSyncGet {}

/// What they do. The key is not told.
#[derive(Message)]
#[message(reply)]
pub struct ShoalSessionSyncGetReply {
    pub retval: i32,
    /// Whether another router is configured.
    pub has_peer: bool,
    pub peer: IpAddr,
    pub local: IpAddr,
    pub port: u16,
    pub is_authenticated: bool,
    pub role: ShoalSessionSyncRole,
    /// Whether this router forwards now.
    pub is_active: bool,
    /// Whether both routers know each other now.
    pub is_up: bool,
    pub peer_is_active: bool,
    pub hello_ms: u32,
    pub dead_ms: u32,
    pub refresh_seconds: u32,
    /// Datagrams that were not acknowledged.
    pub unacknowledged: u32,
    pub sessions_sent: u64,
    pub sessions_received: u64,
    /// Ends that a ring had no room for: all sessions are told again.
    pub ends_lost: u64,
    /// Sessions that a ring had no room for at first.
    pub sessions_late: u64,
    pub not_authentic: u64,
}

impl Request for ShoalSessionSyncGet {
    fn handle(self, call: &Call) -> Result<ShoalSessionSyncGetReply, Retval> {
        let view = sync(call)?.view();
        let count = |name: &str| {
            view.counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
        };
        let none = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
        let peer = view.peer.as_ref();
        let role = match view.source {
            RoleSource::Active => 0,
            RoleSource::Standby => 1,
            RoleSource::Vrrp(_) => 2,
            RoleSource::Interface(_) => 3,
            RoleSource::Bfd(_) => 4,
        };
        Ok(ShoalSessionSyncGetReply {
            retval: 0,
            has_peer: peer.is_some(),
            peer: peer.map_or(none, |peer| peer.address),
            local: peer.map_or(none, |peer| peer.local),
            port: peer.map_or(0, |peer| peer.port),
            is_authenticated: peer.is_some_and(|peer| peer.key.is_some()),
            role: ShoalSessionSyncRole(role),
            is_active: view.role == Role::Active,
            is_up: view.up.is_some(),
            peer_is_active: view.peer_is_active,
            hello_ms: view.timers.hello,
            dead_ms: view.timers.dead,
            refresh_seconds: view.timers.refresh,
            unacknowledged: view.unacknowledged as u32,
            sessions_sent: count("sessions sent"),
            sessions_received: count("sessions received"),
            ends_lost: count("ends lost"),
            sessions_late: count("sessions late"),
            not_authentic: count("not authentic"),
        })
    }
}

/// Asks what became of the other router's sessions, by kind of NAT.
#[derive(Message)]
#[message(request, details = ShoalSessionSyncFeatureDetails)]
pub struct ShoalSessionSyncFeatureDump {}

/// What became of those of one kind.
#[derive(Message)]
#[message(reply)]
pub struct ShoalSessionSyncFeatureDetails {
    pub name: String,
    pub is_on: bool,
    pub entered: u64,
    pub renewed: u64,
    pub replaced: u64,
    pub ended: u64,
    pub swept: u64,
    pub refused: u64,
}

impl Dump for ShoalSessionSyncFeatureDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ShoalSessionSyncFeatureDetails> + 'static {
        let features = sync(call).map(|sync| sync.view().features).unwrap_or_default();
        features.into_iter().map(|feature| {
            let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            let counts = &feature.counts;
            ShoalSessionSyncFeatureDetails {
                name: feature.name.to_owned(),
                is_on: feature.is_on,
                entered: of(&counts.entered),
                renewed: of(&counts.renewed),
                replaced: of(&counts.replaced),
                ended: of(&counts.left),
                swept: of(&counts.swept),
                refused: counts.refused.iter().map(of).sum(),
            }
        })
    }
}

/// Asks which sessions of the other router were refused lately.
#[derive(Message)]
#[message(request, details = ShoalSessionSyncRefusedDetails)]
pub struct ShoalSessionSyncRefusedDump {}

/// One of them, and why.
#[derive(Message)]
#[message(reply)]
pub struct ShoalSessionSyncRefusedDetails {
    pub text: String,
}

impl Dump for ShoalSessionSyncRefusedDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = ShoalSessionSyncRefusedDetails> + 'static {
        let refused = sync(call).map(|sync| sync.view().refused).unwrap_or_default();
        refused.into_iter().map(|text| ShoalSessionSyncRefusedDetails { text })
    }
}
