//! What packets read of the configuration.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::Shards;
pub use shoal_nat::Timeouts;
use shoal_translate46::Prefix64;

/// The first port that is given out; RFC 4787, REQ-3: those below are of another class.
pub const FIRST_PORT: u16 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT as u32;

/// A host's side of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Inside {
    /// The host.
    pub address: Ipv6Addr,
    /// Its port, or the identifier of its queries; 0 of protocols without.
    pub port: u16,
    /// TCP, UDP, ICMP or any other.
    pub protocol: u8,
    /// The host's forwarding table.
    pub table: u32,
}

/// The side that the Internet sees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Outside {
    /// The address that hosts share.
    pub address: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// TCP, UDP, ICMP or any other.
    pub protocol: u8,
}

/// An address that hosts share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolAddress {
    /// The address.
    pub address: Ipv4Addr,
    /// The table whose hosts use it; `None`: all.
    pub table: Option<u32>,
    /// Whether it is an interface's, too: what has no binding is for the router itself.
    pub is_own: bool,
}

/// What one worker may keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bindings.
    pub bindings: u32,
    /// Sessions.
    pub sessions: u32,
}

impl Default for Limits {
    /// VPP's: ten for each bucket of its tables, 1,024 and 2,048.
    fn default() -> Self {
        Limits { bindings: 10_240, sessions: 20_480 }
    }
}

/// No address is within.
const NO_SPAN: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::BROADCAST, Ipv4Addr::UNSPECIFIED);

/// What packets read.
#[derive(Clone, Debug)]
pub struct Config {
    /// Prefixes that stand for the Internet, by the hosts' table.
    pub prefixes: BTreeMap<u32, Prefix64>,
    /// Addresses that hosts share, in the order in which they were given.
    pub pool: Vec<PoolAddress>,
    /// Places in it, by address.
    pub(crate) by_address: Vec<u32>,
    /// The lowest and the highest of them: most addresses are beyond.
    pub(crate) pool_span: (Ipv4Addr, Ipv4Addr),
    /// Static bindings.
    pub by_inside: Shards<Inside, Outside>,
    /// The same from the other side.
    pub by_outside: Shards<Outside, Inside>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Limits.
    pub limits: Limits,
    /// The threads that forward.
    pub workers: Vec<usize>,
    /// Whether another router forwards: no session begins here.
    pub standby: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            prefixes: BTreeMap::new(),
            pool: Vec::new(),
            pool_span: NO_SPAN,
            by_address: Vec::new(),
            by_inside: Shards::default(),
            by_outside: Shards::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            workers: vec![0],
            standby: false,
        }
    }
}

/// Ports of a worker: the first, and how many.
pub fn range(nth: usize, workers: usize) -> (u16, u32) {
    let each = PORTS / workers.max(1) as u32;
    (FIRST_PORT.saturating_add((each * nth as u32) as u16), each)
}

impl Config {
    /// The prefix that stands for the Internet in a table: its own, else that of table 0, else the well-known one.
    pub fn prefix(&self, table: u32) -> Prefix64 {
        let found = self.prefixes.get(&table).or_else(|| self.prefixes.get(&0));
        found.copied().unwrap_or_else(Prefix64::well_known)
    }

    /// Whether hosts share an address, and if so, whether it is an interface's, too.
    pub fn shares(&self, address: Ipv4Addr) -> Option<bool> {
        self.pool_at(address).map(|pool| pool.is_own)
    }

    /// Whether hosts share an address.
    pub fn is_shared(&self, address: Ipv4Addr) -> bool {
        self.pool_at(address).is_some()
    }

    #[inline(always)]
    fn pool_at(&self, address: Ipv4Addr) -> Option<&PoolAddress> {
        let (first, last) = self.pool_span;
        if address < first || address > last {
            return None;
        }
        self.pool_within(address)
    }

    #[inline(never)]
    fn pool_within(&self, address: Ipv4Addr) -> Option<&PoolAddress> {
        let at = self.by_address.binary_search_by_key(&address, |at| self.address(*at)).ok()?;
        self.pool.get(*self.by_address.get(at)? as usize)
    }

    fn address(&self, at: u32) -> Ipv4Addr {
        self.pool.get(at as usize).map_or(Ipv4Addr::UNSPECIFIED, |pool| pool.address)
    }

    /// Replaces the addresses that hosts share.
    pub fn set_pool(&mut self, pool: Vec<PoolAddress>) {
        self.by_address = (0..pool.len() as u32).collect();
        self.pool = pool;
        let mut by_address = std::mem::take(&mut self.by_address);
        by_address.sort_unstable_by_key(|at| self.address(*at));
        let ends = by_address.first().zip(by_address.last());
        self.pool_span = ends.map_or(NO_SPAN, |(first, last)| (self.address(*first), self.address(*last)));
        self.by_address = by_address;
    }

    /// Which of the workers a thread is.
    pub fn nth(&self, thread: usize) -> usize {
        self.workers.iter().position(|worker| *worker == thread).unwrap_or(0)
    }

    /// The thread that has the bindings of a host. Protocols without ports have no port that says which thread gave it out, so
    /// the first worker has them.
    pub fn of_inside(&self, inside: &Inside) -> usize {
        if inside.port == 0 && !has_ports(inside.protocol) {
            return self.worker(0);
        }
        let bits = inside.address.to_bits();
        let folded = (bits ^ (bits >> 64)) as u64 ^ u64::from(inside.table);
        let mixed = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // As many of the 2^32 for each worker, without a division.
        self.worker(((mixed * self.workers.len() as u64) >> 32) as usize)
    }

    /// The thread that has a binding.
    pub fn of_outside(&self, outside: &Outside) -> usize {
        if let Some(inside) = self.by_outside.get(outside) {
            return self.of_inside(inside);
        }
        if !has_ports(outside.protocol) {
            return self.worker(0);
        }
        let each = PORTS / self.workers.len().max(1) as u32;
        self.worker((u32::from(outside.port.saturating_sub(FIRST_PORT)) / each) as usize)
    }

    fn worker(&self, nth: usize) -> usize {
        self.workers.get(nth).or(self.workers.last()).copied().unwrap_or(0)
    }
}

/// Whether hosts of a protocol are told apart by ports or identifiers.
pub fn has_ports(protocol: u8) -> bool {
    use shoal_nat::tuple::{ICMP, TCP, UDP};
    matches!(protocol, TCP | UDP | ICMP)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn both_sides_of_a_binding_lead_to_the_thread_that_made_it() {
        for workers in 1..9usize {
            let mut config = Config { workers: (1..=workers).collect(), ..Config::default() };
            let (address, protocol) = (Ipv4Addr::new(192, 0, 2, 1), 17);
            for nth in 0..workers {
                let (first, count) = range(nth, workers);
                for port in [u32::from(first), u32::from(first) + count - 1] {
                    let port = u16::try_from(port).unwrap();
                    assert_eq!(config.of_outside(&Outside { address, port, protocol }), nth + 1);
                }
            }
            let inside = Inside { address: "2001:db8::7".parse().unwrap(), port: 80, protocol: 6, table: 0 };
            let outside = Outside { address, port: 80, protocol: 6 };
            config.by_outside.insert(outside, inside);
            assert_eq!(config.of_outside(&outside), config.of_inside(&inside), "a static one");
            let (inside, outside) =
                (Inside { port: 0, protocol: 47, ..inside }, Outside { port: 0, protocol: 47, ..outside });
            assert_eq!((config.of_inside(&inside), config.of_outside(&outside)), (1, 1), "without ports");
        }
    }

    #[test]
    fn a_table_without_a_prefix_has_that_of_table_0_or_the_well_known_one() {
        let prefix = |text: &str| Prefix64::new(text.parse().unwrap()).unwrap();
        let mut config = Config::default();
        assert_eq!(config.prefix(3), Prefix64::well_known());
        config.prefixes.insert(0, prefix("2001:db8:64::/96"));
        config.prefixes.insert(3, prefix("2001:db8:65::/48"));
        assert_eq!(
            (config.prefix(1), config.prefix(3)),
            (prefix("2001:db8:64::/96"), prefix("2001:db8:65::/48"))
        );
    }
}
