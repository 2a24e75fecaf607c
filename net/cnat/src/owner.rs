//! Which worker has a packet's session, so that both directions meet on one.
//!
//! Ports are divided into ranges, one for each worker. Of a connection to a virtual address, and of its answers, the client's port
//! decides; of answers to a shared address, the port that the worker gave out. Of all other packets both ends decide together.

use shoal_nat44::ports::{FIRST_PORT, by_port};

use crate::config::{Config, Place};
use crate::session_direction::Tuple;

/// An address as 32 bits that are the same for each of its packets.
fn fold(address: u128) -> u32 {
    (address ^ address >> 32 ^ address >> 64 ^ address >> 96) as u32
}

impl Config {
    /// Which of the workers a thread is.
    pub fn nth(&self, thread: usize) -> Option<usize> {
        self.workers.iter().position(|worker| *worker == thread)
    }

    /// The thread that has the session of a packet.
    #[inline]
    pub fn owner(&self, is_ip6: bool, protocol: u8, tuple: Tuple) -> usize {
        match self.workers.as_slice() {
            [] => 0,
            [only] => *only,
            all => all.get(self.nth_owner(is_ip6, protocol, tuple)).copied().unwrap_or(0),
        }
    }

    fn nth_owner(&self, is_ip6: bool, protocol: u8, tuple: Tuple) -> usize {
        let workers = self.workers.len();
        let Tuple { src, dst, sport, dport } = tuple;
        let by = |address: u128, port: u16| by_port(port, fold(address), workers);
        let place = |address, port| Place { is_ip6, address, port, protocol };
        if self.snat_addresses.get(&(is_ip6, dst)).is_some() && dport >= FIRST_PORT {
            return by(dst, dport);
        }
        if self.snat_addresses.get(&(is_ip6, src)).is_some() && sport >= FIRST_PORT {
            return by(src, sport);
        }
        let pinned = |pinned: bool, otherwise: usize| if pinned { 0 } else { otherwise };
        if let Some(to) = self.find(&place(dst, dport)) {
            return pinned(to.is_pinned(), by(src, sport));
        }
        if let Some(from) = self.find(&place(src, sport)) {
            return pinned(from.is_pinned(), by(dst, dport));
        }
        if let Some(is_pinned) = self.backends.get(&place(src, sport)) {
            return pinned(*is_pinned, by(dst, dport));
        }
        if let Some(is_pinned) = self.backends.get(&place(dst, dport)) {
            return pinned(*is_pinned, by(src, sport));
        }
        let ends = fold(src).wrapping_add(fold(dst)).wrapping_add(u32::from(sport) + u32::from(dport));
        (ends.wrapping_mul(0x9e37_79b1) >> 8) as usize % workers.max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_fib::FlowFields;
    use shoal_nat44::ports::range;

    use super::*;
    use crate::translation::{Flags, LbType, Translation};

    const VIP: u128 = 0xc633_6401;
    const BACKEND: u128 = 0x0a00_0002;
    const SHARED: u128 = 0xc000_0209;
    const TCP: u8 = 6;

    fn config(workers: usize) -> Config {
        let mut config = Config { workers: (1..=workers).collect(), ..Config::default() };
        let how = ((Flags::default(), FlowFields::DEFAULT), (LbType::Default, 1));
        let translation = Translation::new((0, 1), false, how.0, how.1, Vec::new());
        config.translations.push(Some(Arc::new(translation)));
        let place = |address, port| Place { is_ip6: false, address, port, protocol: TCP };
        config.vips.insert(place(VIP, 80), 0);
        config.backends.insert(place(BACKEND, 8080), false);
        config.snat_addresses.insert((false, SHARED), ());
        config
    }

    #[test]
    fn both_directions_of_a_connection_meet() {
        for workers in 1..9 {
            let config = config(workers);
            let owner = |tuple| config.owner(false, TCP, tuple);
            let mut seen = std::collections::BTreeSet::new();
            for n in 0..500_u16 {
                let (src, sport) = (0xc0a8_0000 + u128::from(n), 100 + n * 131);
                let there = Tuple { src, dst: VIP, sport, dport: 80 };
                let onward = Tuple { dst: BACKEND, dport: 8080, ..there };
                let worker = owner(there);
                assert_eq!([owner(onward), owner(onward.reversed()), owner(there.reversed())], [worker; 3]);
                let other = Tuple { dst: 0x0101_0101, dport: 443, ..there };
                assert_eq!(owner(other), owner(other.reversed()));
                seen.extend([worker, owner(other)]);
            }
            assert_eq!(seen.len(), workers, "all have some");
            for nth in 0..workers {
                let (first, count) = range(nth, workers);
                for sport in [first, first + (count - 1) as u16] {
                    let left = Tuple { src: SHARED, dst: 1, sport, dport: 443 };
                    assert_eq!(owner(left.reversed()), nth + 1, "the one that gave the port out");
                }
            }
        }
    }
}
