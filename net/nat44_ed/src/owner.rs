//! Which worker has a packet's session, so that both directions meet on one.
//!
//! A shared address's ports are divided into ranges, one for each worker. A host's packets go to the worker of its source port's
//! range, so that the port can be kept; answers come to that port. Sessions of static mappings are at a worker that the inside
//! host's address picks, or the client's where there are several hosts.

use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};

use crate::config::Config;
use crate::mapping::Served;

/// The first port that is given out.
pub const FIRST_PORT: u16 = 1024;
const PORTS: u32 = 65536 - FIRST_PORT as u32;

/// A packet's direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From hosts.
    In2out,
    /// To hosts.
    Out2in,
}

/// VPP's hash of an address: its bytes, the last one of the address as the highest, added up.
pub fn fold(address: u32) -> u32 {
    let a = address.swap_bytes();
    a.wrapping_add(a >> 8).wrapping_add(a >> 16).wrapping_add(a >> 24)
}

/// Whether packets of a protocol have ports.
pub fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | ICMP)
}

/// Ports of a worker: the first, and how many.
pub fn range(nth: usize, workers: usize) -> (u16, u32) {
    let each = PORTS / workers.max(1) as u32;
    (FIRST_PORT.saturating_add((each * nth as u32) as u16), each)
}

impl Config {
    fn by_address(&self, address: u32) -> usize {
        fold(address) as usize % self.workers.len().max(1)
    }

    fn by_port(&self, port: u16, otherwise: u32) -> usize {
        let each = PORTS / self.workers.len().max(1) as u32;
        match port.checked_sub(FIRST_PORT) {
            Some(offset) => (u32::from(offset) / each) as usize % self.workers.len().max(1),
            None => self.by_address(otherwise),
        }
    }

    /// Which of the workers a thread is.
    pub fn nth(&self, thread: usize) -> Option<usize> {
        self.workers.iter().position(|worker| *worker == thread)
    }

    /// The thread that has the session of a packet.
    pub fn owner(&self, tuple: Tuple, protocol: u8, way: Way) -> usize {
        let nth = match self.workers.as_slice() {
            [] => return 0,
            [only] => return *only,
            _ => self.nth_owner(tuple, protocol, way),
        };
        self.workers.get(nth).copied().unwrap_or(0)
    }

    fn nth_owner(&self, tuple: Tuple, protocol: u8, way: Way) -> usize {
        let Tuple { src, dst, sport, dport } = tuple;
        let to = self.mappings.external(dst, dport, protocol);
        if way == Way::Out2in
            && let Some(mapping) = to
        {
            let host = mapping.locals.first().map_or(dst, |local| local.address);
            return self.by_address(if mapping.balanced.is_some() { src } else { host });
        }
        // What comes back to a port that was given out goes by the port's range, whoever answers.
        let is_given_out = has_ports(protocol) && dport >= FIRST_PORT && to.is_none();
        match self.mappings.served(src, sport, protocol) {
            Some(Served::ByHost) if !(is_given_out && self.is_pool(dst) && !self.is_twice(dst)) => {
                return self.by_address(src);
            }
            Some(Served::ByClient) if !(is_given_out && (self.is_pool(dst) || self.is_twice(dst))) => {
                return self.by_address(dst);
            }
            _ => {}
        }
        if has_ports(protocol) {
            let comes_back =
                way == Way::Out2in || (is_given_out && (self.is_pool(dst) || self.is_twice(dst)));
            return if comes_back { self.by_port(dport, dst) } else { self.by_port(sport, src) };
        }
        match way {
            Way::Out2in => self.by_address(src),
            Way::In2out => match to.and_then(|mapping| mapping.locals.first()) {
                Some(local) => self.by_address(local.address),
                None if self.is_pool(dst) => self.by_address(src),
                None => self.by_address(dst),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_ports_that_do_not_overlap_and_both_directions_meet() {
        for workers in 1..9 {
            let config = Config { workers: (1..=workers).collect(), ..Config::default() };
            for nth in 0..workers {
                let (first, count) = range(nth, workers);
                for port in [first, first + (count - 1) as u16] {
                    let tuple = Tuple { src: 1, dst: 2, sport: port, dport: 53 };
                    assert_eq!(config.owner(tuple, UDP, Way::In2out), nth + 1);
                    let answer = Tuple { dst: 0xc0a8_0001, ..tuple.reversed() };
                    assert_eq!(config.owner(answer, UDP, Way::Out2in), nth + 1);
                }
            }
        }
    }

    #[test]
    fn the_hash_of_an_address_is_vpps() {
        assert_eq!(fold(0x0a00_0001), 0x0100_000a_u32.wrapping_add(0x01_0000 + 0x0100 + 1));
    }
}
