//! What packets read of the configuration: one version of it, replaced as a whole.

use std::collections::BTreeMap;

use shoal_flow::Timeout;

use crate::bindings::IndependentAddresses;
use crate::sessions::ticks;
use shoal_nat44::mapping::Mappings;

pub use shoal_nat::Timeouts;
pub use shoal_nat44::pool::PoolAddress;
use shoal_nat44::reach::Outside;

/// One of the timeouts, in ticks.
#[inline(always)]
pub fn ticks_of(timeouts: &Timeouts, timeout: Timeout) -> u32 {
    ticks(match timeout.number() {
        1 => timeouts.tcp_established,
        2 => timeouts.tcp_transitory,
        3 => timeouts.icmp,
        _ => timeouts.udp,
    })
}

/// One version of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Whether packets that belong to no session and no mapping pass from outside.
    pub forwarding: bool,
    /// The largest segment a TCP connection may ask for; 0: any.
    pub mss: u16,
    /// How long sessions live.
    pub timeouts: Timeouts,
    /// Sessions of a worker at most.
    pub sessions: u32,
    /// The table of hosts by default.
    pub inside_table: u32,
    /// Sessions of one inside table and worker at most.
    pub limits: BTreeMap<u32, u32>,
    /// Addresses that hosts share.
    pub pool: Vec<PoolAddress>,
    /// Those of them whose mappings do not depend on the remote host.
    pub independent: IndependentAddresses,
    /// Addresses that stand for outside hosts.
    pub twice: Vec<PoolAddress>,
    /// Where the outside is.
    pub outside: Outside,
    /// Static mappings.
    pub mappings: Mappings,
    /// Threads that forward.
    pub workers: Vec<usize>,
    /// Whether another router forwards: no session begins here.
    pub standby: bool,
}

impl Config {
    /// Whether hosts share an address.
    pub fn is_pool(&self, address: u32) -> bool {
        self.pool.iter().any(|pool| pool.address == address)
    }

    /// Whether an address stands for outside hosts.
    pub fn is_twice(&self, address: u32) -> bool {
        self.twice.iter().any(|pool| pool.address == address)
    }

    /// Sessions of one inside table and worker at most: its own limit, or that of table 0, which is the router's.
    pub fn limit(&self, table: u32) -> u32 {
        self.limits.get(&table).copied().unwrap_or(self.sessions)
    }
}
