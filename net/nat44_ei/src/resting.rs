//! Ports that were a host's rest before another host has them: what the world still sends to the first is not for the second
//! (RFC 6888, REQ-8).
//!
//! Two generations of marks: what ended since the last turn, and what ended before it. At a turn, every 120 seconds, the older ones are
//! forgotten. So a port rests for 120 to 240 seconds. A port of a host's block goes on being the host's; the block rests when it is
//! the host's no more.

use std::collections::HashSet;

use shoal_flow::Tick;

use crate::blocks::{BlockKey, place};
use crate::sessions::{Endpoint, TICKS};

/// The least time of rest.
const REST: u64 = 120 * TICKS;
/// Words of a bit for each port.
const WORDS: usize = 65536 / 64;

/// Ports of an address and a protocol, a bit for each.
type PortSet = Box<[u64]>;

/// What ended between two turns.
#[derive(Default)]
struct Generation {
    /// By address and [`place`] of the protocol.
    ports: Vec<((u32, usize), PortSet)>,
    blocks: HashSet<BlockKey>,
}

impl Generation {
    fn at(&self, key: (u32, usize)) -> Result<usize, usize> {
        self.ports.binary_search_by_key(&key, |(key, _)| *key)
    }

    fn has(&self, (address, port): Endpoint, place: usize) -> bool {
        let set = self.at((address, place)).ok().and_then(|at| self.ports.get(at));
        let word = set.and_then(|(_, set)| set.get(usize::from(port) / 64));
        word.is_some_and(|word| word >> (port % 64) & 1 == 1)
    }

    fn put(&mut self, (address, port): Endpoint, place: usize) {
        let key = (address, place);
        let at = self.at(key).unwrap_or_else(|at| {
            self.ports.insert(at, (key, vec![0; WORDS].into()));
            at
        });
        let word = self.ports.get_mut(at).and_then(|(_, set)| set.get_mut(usize::from(port) / 64));
        if let Some(word) = word {
            *word |= 1 << (port % 64);
        }
    }
}

/// Ports and blocks of ports that rest.
#[derive(Default)]
pub struct Resting {
    young: Generation,
    old: Generation,
    /// When the young ones were none.
    turned: Tick,
}

impl Resting {
    /// Forgets what has rested for long enough.
    #[inline]
    pub fn turn(&mut self, now: Tick) {
        let age = now.0.saturating_sub(self.turned.0);
        if age >= REST {
            let young = std::mem::take(&mut self.young);
            self.old = if age < 2 * REST { young } else { Generation::default() };
            self.turned = now;
        }
    }

    /// A port is no host's from now on.
    pub fn put(&mut self, end: Endpoint, protocol: u8, now: Tick) {
        self.turn(now);
        self.young.put(end, place(protocol));
    }

    /// A block is no host's from now on.
    pub fn put_block(&mut self, block: BlockKey, now: Tick) {
        self.turn(now);
        self.young.blocks.insert(block);
    }

    /// Whether a port rests.
    pub fn has(&self, end: Endpoint, protocol: u8) -> bool {
        [&self.young, &self.old].into_iter().any(|those| those.has(end, place(protocol)))
    }

    /// Whether a block rests.
    pub fn has_block(&self, block: BlockKey) -> bool {
        self.young.blocks.contains(&block) || self.old.blocks.contains(&block)
    }
}

#[cfg(test)]
mod tests {
    use shoal_nat::tuple::{ICMP, TCP, UDP};

    use super::*;

    #[test]
    fn a_port_and_a_block_rest_for_120_to_240_seconds() {
        for ended in [0, 1, 119, 120, 239] {
            let at = |second: u64| Tick((1000 + second) * TICKS);
            let mut resting = Resting { turned: at(0), ..Resting::default() };
            resting.put((7, 1024), UDP, at(ended));
            resting.put_block((7, 2048), at(ended));
            for later in 0..400 {
                resting.turn(at(ended + later));
                let both = (resting.has((7, 1024), UDP), resting.has_block((7, 2048)));
                match later {
                    0..120 => assert_eq!(both, (true, true), "{later} s after {ended}"),
                    240.. => assert_eq!(both, (false, false), "{later} s after {ended}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn only_that_port_of_that_address_and_protocol_rests() {
        let mut resting = Resting::default();
        for (address, port, protocol) in [(9, 65535, TCP), (3, 0, ICMP), (5, 64, UDP)] {
            resting.put((address, port), protocol, Tick(0));
        }
        let all = [(9, 65535, TCP), (3, 0, ICMP), (5, 64, UDP), (9, 65535, UDP), (9, 0, TCP), (4, 0, ICMP)];
        let rests = all.map(|(address, port, protocol)| resting.has((address, port), protocol));
        assert_eq!(rests, [true, true, true, false, false, false]);
        // What was forgotten for long is no old generation.
        resting.turn(Tick(3 * REST));
        assert!(!resting.has((9, 65535), TCP));
    }
}
