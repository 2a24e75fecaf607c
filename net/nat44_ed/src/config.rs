//! What packets read of the configuration: one version of it, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};

use shoal_flow::Timeout;
use shoal_interface::SwIfIndex;

use crate::mapping::Mappings;
use crate::sessions::ticks;

pub use shoal_nat::Timeouts;

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

/// An address that hosts share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolAddress {
    /// The address.
    pub address: u32,
    /// The forwarding table whose hosts use it; `None`: all.
    pub table: Option<u32>,
    /// The interface whose network it is in, with the network's address and mask.
    pub network: Option<(SwIfIndex, u32, u32)>,
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
    /// Tables of hosts, and of what is outside, where nothing else is said.
    pub inside_table: u32,
    /// Likewise, outside.
    pub outside_table: u32,
    /// Sessions of one inside table and worker at most.
    pub limits: BTreeMap<u32, u32>,
    /// Addresses that hosts share.
    pub pool: Vec<PoolAddress>,
    /// Addresses that stand for outside hosts.
    pub twice: Vec<PoolAddress>,
    /// Interfaces to the outside.
    pub outside: Vec<SwIfIndex>,
    /// Their tables.
    pub outside_tables: BTreeSet<u32>,
    /// Tables in which destinations of a table's hosts are looked for, in this order.
    pub ways_out: BTreeMap<u32, Vec<u32>>,
    /// Static mappings.
    pub mappings: Mappings,
    /// Threads that forward.
    pub workers: Vec<usize>,
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
