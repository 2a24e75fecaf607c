//! What packets read of the configuration.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The first port that is given out.
pub const FIRST_PORT: u16 = 1024;
const PORTS: u32 = 65536 - FIRST_PORT as u32;

/// The ends of tunnels, and the shared addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Shared addresses.
    pub pool: BTreeSet<Ipv4Addr>,
    /// The AFTR's end of tunnels: the address that IPv4 errors come from, and the one that packets are sent to.
    pub aftr: Option<TunnelAddresses>,
    /// The B4's.
    pub b4: Option<TunnelAddresses>,
    /// The threads that forward.
    pub workers: Vec<usize>,
    /// Where shared addresses lie.
    bounds: Bounds,
}

/// Where shared addresses lie: nearly all packets are for none, or for one of few that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    first: u32,
    last: u32,
    /// Whether all between them are shared.
    is_dense: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            pool: BTreeSet::new(),
            aftr: None,
            b4: None,
            workers: vec![0],
            bounds: Bounds { first: u32::MAX, last: 0, is_dense: false },
        }
    }
}

/// The two addresses of a tunnel's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelAddresses {
    /// In the tunnel.
    pub ip4: Ipv4Addr,
    /// Of the tunnel.
    pub ip6: Ipv6Addr,
}

/// Ports of a worker: the first, and how many.
pub fn range(nth: usize, workers: usize) -> (u16, u32) {
    let each = PORTS / workers.max(1) as u32;
    (FIRST_PORT.saturating_add((each * nth as u32) as u16), each)
}

impl Config {
    /// The same with so many threads, ready for packets.
    pub fn published(mut self, workers: Vec<usize>) -> Self {
        let ends = self.pool.first().zip(self.pool.last());
        let (first, last) = ends.map_or((u32::MAX, 0), |(first, last)| (first.to_bits(), last.to_bits()));
        let is_dense = last.checked_sub(first).is_some_and(|more| more as usize + 1 == self.pool.len());
        self.bounds = Bounds { first, last, is_dense };
        self.workers = workers;
        self
    }

    /// Whether an address is shared.
    #[inline(always)]
    pub fn is_shared(&self, address: Ipv4Addr) -> bool {
        let Bounds { first, last, is_dense } = self.bounds;
        let within = (first..=last).contains(&address.to_bits());
        within && (is_dense || self.pool.contains(&address))
    }

    /// Which of the workers a thread is.
    pub fn nth(&self, thread: usize) -> usize {
        self.workers.iter().position(|worker| *worker == thread).unwrap_or(0)
    }

    /// The thread that has the sessions of a B4.
    pub fn of_b4(&self, b4: Ipv6Addr) -> usize {
        let bits = b4.to_bits();
        let folded = (bits ^ (bits >> 64)) as u64;
        let mixed = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.worker(mixed as usize)
    }

    /// The thread that gave out a port.
    pub fn of_port(&self, port: u16) -> usize {
        let each = PORTS / self.workers.len().max(1) as u32;
        self.worker((u32::from(port.saturating_sub(FIRST_PORT)) / each) as usize)
    }

    fn worker(&self, nth: usize) -> usize {
        self.workers.get(nth % self.workers.len().max(1)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn shared_addresses_are_known() {
        let pool = |addresses: &[u32]| Config {
            pool: addresses.iter().map(|address| Ipv4Addr::from_bits(*address)).collect(),
            ..Config::default()
        };
        for addresses in [&[][..], &[7], &[7, 8, 9], &[5, 7, 9], &[0, u32::MAX]] {
            let config = pool(addresses).published(vec![0]);
            for address in (0..12).chain([u32::MAX - 1, u32::MAX]) {
                assert_eq!(config.is_shared(Ipv4Addr::from_bits(address)), addresses.contains(&address));
            }
        }
    }

    #[test]
    fn each_port_is_one_workers() {
        for workers in 1..9usize {
            let config = Config { workers: (1..=workers).collect(), ..Config::default() };
            for nth in 0..workers {
                let (first, count) = range(nth, workers);
                for port in [u32::from(first), u32::from(first) + count - 1] {
                    assert_eq!(config.of_port(u16::try_from(port).unwrap()), nth + 1);
                }
            }
            assert!((1..=workers).contains(&config.of_b4("2001:db8::1".parse().unwrap())));
        }
    }
}
