//! What an operator says.

use std::net::IpAddr;

use shoal_bfd::SessionKey;
use shoal_interface::SwIfIndex;
use shoal_redundancy::Group;

use crate::auth::Key;
use crate::error::SyncError;

/// The other router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// This router's address, to which it sends.
    pub local: IpAddr,
    /// The UDP port of both.
    pub port: u16,
    /// The key of both; `None`: the operator says that what comes from the address is the other router's.
    pub key: Option<Key>,
}

impl Peer {
    /// The port, by default. It is assigned to nothing.
    pub const PORT: u16 = 8790;

    /// # Errors
    /// The addresses are none of two routers, or the port is 0.
    pub fn check(&self) -> Result<(), SyncError> {
        if self.address.is_ipv4() != self.local.is_ipv4() {
            return Err(SyncError::Families(self.local, self.address));
        }
        for address in [self.address, self.local] {
            let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            if address.is_unspecified() || address.is_multicast() || is_broadcast {
                return Err(SyncError::Address(address));
            }
        }
        if self.address == self.local {
            return Err(SyncError::Same(self.local));
        }
        if self.port == 0 { Err(SyncError::NoPort) } else { Ok(()) }
    }
}

/// Times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Milliseconds between hellos.
    pub hello: u32,
    /// The other router is dead after so many milliseconds of silence.
    pub dead: u32,
    /// Seconds after which a session that is used is reported again.
    pub refresh: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { hello: 200, dead: 1000, refresh: 60 }
    }
}

impl Timers {
    /// # Errors
    /// One is out of range.
    pub fn check(&self) -> Result<(), SyncError> {
        for (what, value, least, most) in [
            ("milliseconds between hellos", self.hello, 10, 10_000),
            ("milliseconds of silence", self.dead, 30, 60_000),
            ("seconds between refreshes", self.refresh, 1, 3600),
        ] {
            if !(least..=most).contains(&value) {
                return Err(SyncError::Range { what, value, least, most });
            }
        }
        if self.dead < self.hello.saturating_mul(3) {
            return Err(SyncError::DeadTooSoon { dead: self.dead, hello: self.hello });
        }
        Ok(())
    }
}

/// What says whether this router forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RoleSource {
    /// It does.
    #[default]
    Active,
    /// It does not.
    Standby,
    /// It does while it is the master of a virtual router.
    Vrrp(Group),
    /// It does while an interface is up.
    Interface(SwIfIndex),
    /// It does while a BFD session to the other router is not up.
    Bfd(SessionKey),
}
