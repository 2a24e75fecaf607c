//! What packets read of the configuration: which ports a host has follows from its address.

use std::net::Ipv4Addr;

pub use shoal_nat::Timeouts;
use shoal_wire::Ip4Prefix;

/// The first port that is given out.
pub const FIRST_PORT: u16 = 1024;
/// Ports of an address that are given out.
const PORTS: u64 = 65_536 - FIRST_PORT as u64;

/// Hosts inside and the addresses they share. Equal shares of the ports of each address go to hosts, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Map {
    /// The hosts.
    pub inside: Ip4Prefix,
    /// The addresses.
    pub outside: Ip4Prefix,
    /// Hosts of an address.
    pub ratio: u32,
    /// Ports of a host.
    pub ports: u16,
}

/// What a host has of the outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The address.
    pub address: Ipv4Addr,
    /// The first of its ports.
    pub first: u16,
    /// How many it has.
    pub ports: u16,
}

impl Share {
    /// The last of its ports.
    pub fn last(&self) -> u16 {
        self.first.saturating_add(self.ports.saturating_sub(1))
    }
}

fn hosts(prefix: Ip4Prefix) -> u64 {
    1 << (32 - u32::from(prefix.len()).min(32))
}

impl Map {
    /// Hosts that share addresses; `None`: there are fewer hosts than addresses, or more than ports.
    pub fn new(inside: Ip4Prefix, outside: Ip4Prefix) -> Option<Map> {
        let (inside, outside) = (inside.normalized(), outside.normalized());
        let ratio = hosts(inside) / hosts(outside);
        if ratio == 0 || ratio > PORTS {
            return None;
        }
        let ports = u16::try_from(PORTS / ratio).ok()?;
        Some(Map { inside, outside, ratio: ratio as u32, ports })
    }

    /// What a host of this map has.
    pub fn forward(&self, host: Ipv4Addr) -> Share {
        let nth = host.to_bits().wrapping_sub(self.inside.network().to_bits());
        let address = self.outside.network().to_bits().wrapping_add(nth / self.ratio);
        let first = u32::from(FIRST_PORT) + u32::from(self.ports) * (nth % self.ratio);
        Share { address: Ipv4Addr::from_bits(address), first: first as u16, ports: self.ports }
    }

    /// The host that has a port; `None`: none has.
    pub fn reverse(&self, address: Ipv4Addr, port: u16) -> Option<Ipv4Addr> {
        let place = u32::from(port.checked_sub(FIRST_PORT)? / self.ports);
        let nth = address.to_bits().wrapping_sub(self.outside.network().to_bits());
        let host =
            self.inside.network().to_bits().wrapping_add(nth.wrapping_mul(self.ratio)).wrapping_add(place);
        (place < self.ratio).then(|| Ipv4Addr::from_bits(host))
    }
}

/// What packets read.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maps, in the order in which they were given.
    pub maps: Vec<Map>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// The hosts' table.
    pub inside_table: u32,
    /// The world's.
    pub outside_table: u32,
    /// The threads that forward.
    pub workers: Vec<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            maps: Vec::new(),
            timeouts: Timeouts::default(),
            inside_table: 0,
            outside_table: 0,
            workers: vec![0],
        }
    }
}

impl Config {
    /// The map of a host.
    pub fn of_host(&self, host: Ipv4Addr) -> Option<&Map> {
        self.maps.iter().find(|map| map.inside.contains(host))
    }

    /// The map of a shared address.
    pub fn of_shared(&self, address: Ipv4Addr) -> Option<&Map> {
        self.maps.iter().find(|map| map.outside.contains(address))
    }

    /// The thread that has a host's sessions.
    pub fn worker(&self, host: Ipv4Addr) -> usize {
        let mixed = u64::from(host.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // As many of the 2^32 for each worker, without a division.
        let nth = (mixed * self.workers.len() as u64) >> 32;
        self.workers.get(nth as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn map(inside: &str, outside: &str) -> Option<Map> {
        Map::new(inside.parse().unwrap(), outside.parse().unwrap())
    }

    #[test]
    fn hosts_have_the_ports_that_vpp_gives_them() {
        let map = map("10.0.0.0/24", "20.0.0.40/30").unwrap();
        assert_eq!((map.ratio, map.ports), (64, 1008));
        let share = map.forward(Ipv4Addr::new(10, 0, 0, 5));
        assert_eq!((share.address, share.first, share.last()), (Ipv4Addr::new(20, 0, 0, 40), 6064, 7071));
        assert_eq!(map.reverse(Ipv4Addr::new(20, 0, 0, 40), 6000), Some(Ipv4Addr::new(10, 0, 0, 4)));
    }

    #[test]
    fn every_port_leads_to_the_host_that_has_it() {
        for (inside, outside) in [
            ("10.0.0.0/20", "192.0.2.0/30"),
            ("10.0.0.0/30", "192.0.2.0/30"),
            ("10.0.0.0/16", "192.0.2.1/32"),
        ] {
            let Some(map) = map(inside, outside) else {
                assert_eq!(inside, "10.0.0.0/16", "more hosts than ports");
                continue;
            };
            for nth in 0..hosts(map.inside) as u32 {
                let host = Ipv4Addr::from_bits(map.inside.network().to_bits() + nth);
                let share = map.forward(host);
                assert!(map.outside.contains(share.address));
                for port in [share.first, share.last()] {
                    assert_eq!(map.reverse(share.address, port), Some(host));
                }
            }
            assert_eq!(map.reverse(map.outside.network(), 1023), None);
        }
        assert!(map("10.0.0.0/30", "192.0.2.0/24").is_none(), "fewer hosts than addresses");
    }
}
