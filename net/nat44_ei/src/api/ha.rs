//! Another router that learns of sessions.

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_message::{Message, Retval};
use shoal_module::Control;
use shoal_module::api::{Call, ClientIndex, Request};

use super::nat;
use crate::{Failover, Listener};

/// Says where this router hears of another's sessions; port 0: nowhere.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiHaSetListener {
    pub ip_address: Ipv4Addr,
    pub port: u16,
    /// The longest packet.
    pub path_mtu: u32,
}

impl Request for Nat44EiHaSetListener {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Nat44EiHaSetListener { ip_address: address, port, path_mtu } = self;
        Ok(nat(call)?.set_listener(Listener { address, port, path_mtu })?)
    }
}

/// Says which router hears of this one's sessions; port 0: none.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiHaSetFailover {
    pub ip_address: Ipv4Addr,
    pub port: u16,
    /// Seconds after which it hears again of a session that is used.
    pub session_refresh_interval: u32,
}

impl Request for Nat44EiHaSetFailover {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let refresh = self.session_refresh_interval;
        nat(call)?.set_failover(Failover { address: self.ip_address, port: self.port, refresh });
        Ok(())
    }
}

/// Asks where this router hears of another's sessions.
#[derive(Message)]
#[message(request, reply = Nat44EiHaGetListenerReply)]
pub struct Nat44EiHaGetListener {}

/// Where it does.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiHaGetListenerReply {
    pub retval: i32,
    pub ip_address: Ipv4Addr,
    pub port: u16,
    pub path_mtu: u32,
}

impl Request for Nat44EiHaGetListener {
    fn handle(self, call: &Call) -> Result<Nat44EiHaGetListenerReply, Retval> {
        let none = Listener { address: Ipv4Addr::UNSPECIFIED, port: 0, path_mtu: 0 };
        let Listener { address, port, path_mtu } = nat(call)?.listener().unwrap_or(none);
        Ok(Nat44EiHaGetListenerReply { retval: 0, ip_address: address, port, path_mtu })
    }
}

/// Asks which router hears of this one's sessions.
#[derive(Message)]
#[message(request, reply = Nat44EiHaGetFailoverReply)]
pub struct Nat44EiHaGetFailover {}

/// Which one does.
#[derive(Message)]
#[message(reply)]
pub struct Nat44EiHaGetFailoverReply {
    pub retval: i32,
    pub ip_address: Ipv4Addr,
    pub port: u16,
    pub session_refresh_interval: u32,
}

impl Request for Nat44EiHaGetFailover {
    fn handle(self, call: &Call) -> Result<Nat44EiHaGetFailoverReply, Retval> {
        let none = Failover { address: Ipv4Addr::UNSPECIFIED, port: 0, refresh: 0 };
        let Failover { address, port, refresh } = nat(call)?.failover().unwrap_or(none);
        let session_refresh_interval = refresh;
        Ok(Nat44EiHaGetFailoverReply { retval: 0, ip_address: address, port, session_refresh_interval })
    }
}

/// Tells the other router what it was not told yet.
#[derive(Message)]
#[message(request)]
pub struct Nat44EiHaFlush {}

impl Request for Nat44EiHaFlush {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        nat(call)?.flush();
        Ok(())
    }
}

/// Tells the other router of all sessions.
#[derive(Message)]
#[message(request, events = Nat44EiHaResyncCompletedEvent)]
pub struct Nat44EiHaResync {
    /// Whether the client hears when it is done.
    pub want_resync_event: u8,
    pub pid: u32,
}

impl Request for Nat44EiHaResync {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let client = (self.want_resync_event != 0).then_some((call.client, self.pid));
        Ok(nat(call)?.resync(client)?)
    }
}

/// The other router has received all sessions.
#[derive(Message)]
#[message(event)]
pub struct Nat44EiHaResyncCompletedEvent {
    /// Of so many datagrams it did not say that it has them.
    pub missed_count: u32,
}

/// Tells a client that the other router knows all.
pub(crate) fn resynced(control: &Rc<Control>, (client, pid): (ClientIndex, u32), missed_count: u32) {
    if let Ok(clients) = control.get::<shoal_module::api::Clients>() {
        clients.send(client, pid, &Nat44EiHaResyncCompletedEvent { missed_count });
    }
}
