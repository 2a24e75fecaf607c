//! Which worker has a packet's session, so that both directions meet on one.
//!
//! A shared address's ports are divided into ranges, one for each worker. A host's packets go to the worker of its source port's
//! range, so that the port can be kept; answers come to that port. Sessions of static mappings are at a worker that the inside
//! host's address picks, or the client's where there are several hosts.

use shoal_nat::Tuple;
use shoal_nat44::mapping::WorkerChoice;
use shoal_nat44::ports::{FIRST_PORT, by_address, by_port, has_ports};

use crate::config::Config;

/// A packet's direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From hosts.
    In2out,
    /// To hosts.
    Out2in,
}

impl Config {
    fn by_address(&self, address: u32) -> usize {
        by_address(address, self.workers.len())
    }

    /// Which of the workers a thread is.
    pub fn nth(&self, thread: usize) -> Option<usize> {
        self.workers.iter().position(|worker| *worker == thread)
    }

    /// The thread that has the session of a packet.
    pub fn owner(&self, tuple: Tuple, protocol: u8, way: Direction) -> usize {
        let nth = match self.workers.as_slice() {
            [] => return 0,
            [only] => return *only,
            _ => self.nth_owner(tuple, protocol, way),
        };
        self.workers.get(nth).copied().unwrap_or(0)
    }

    fn nth_owner(&self, tuple: Tuple, protocol: u8, way: Direction) -> usize {
        let Tuple { src, dst, sport, dport } = tuple;
        let to = self.mappings.external(dst, dport, protocol);
        if way == Direction::Out2in
            && let Some(mapping) = to
        {
            let host = mapping.locals.first().map_or(dst, |local| local.address);
            return self.by_address(if mapping.balanced.is_some() { src } else { host });
        }
        // What comes back to a port that was given out goes by the port's range, no matter which host answers.
        let is_given_out = has_ports(protocol) && dport >= FIRST_PORT && to.is_none();
        match self.mappings.served(src, sport, protocol) {
            Some(WorkerChoice::ByHost) if !(is_given_out && self.is_pool(dst) && !self.is_twice(dst)) => {
                return self.by_address(src);
            }
            Some(WorkerChoice::ByClient) if !(is_given_out && (self.is_pool(dst) || self.is_twice(dst))) => {
                return self.by_address(dst);
            }
            _ => {}
        }
        if has_ports(protocol) {
            let comes_back =
                way == Direction::Out2in || (is_given_out && (self.is_pool(dst) || self.is_twice(dst)));
            let (port, address) = if comes_back { (dport, dst) } else { (sport, src) };
            return by_port(port, address, self.workers.len());
        }
        match way {
            Direction::Out2in => self.by_address(src),
            Direction::In2out => match to.and_then(|mapping| mapping.locals.first()) {
                Some(local) => self.by_address(local.address),
                None if self.is_pool(dst) => self.by_address(src),
                None => self.by_address(dst),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_nat::tuple::UDP;
    use shoal_nat44::ports::range;

    use super::*;

    #[test]
    fn workers_have_ports_that_do_not_overlap_and_both_directions_meet() {
        for workers in 1..9 {
            let config = Config { workers: (1..=workers).collect(), ..Config::default() };
            for nth in 0..workers {
                let (first, count) = range(nth, workers);
                for port in [first, first + (count - 1) as u16] {
                    let tuple = Tuple { src: 1, dst: 2, sport: port, dport: 53 };
                    assert_eq!(config.owner(tuple, UDP, Direction::In2out), nth + 1);
                    let answer = Tuple { dst: 0xc0a8_0001, ..tuple.reversed() };
                    assert_eq!(config.owner(answer, UDP, Direction::Out2in), nth + 1);
                }
            }
        }
    }
}
