//! The prefixes.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use fastrand::Rng;

use crate::lengths::{IP4, IP6, split};

/// A prefix: its network, left-aligned in 32 or 128 bits, and its length.
pub type Ip4 = (Ipv4Addr, u8);
/// As [`Ip4`].
pub type Ip6 = (Ipv6Addr, u8);

/// Blocks the registries give out from, of 12 bits but for the first (16).
const REGISTRIES: [(u128, u8); 6] =
    [(0x2001, 16), (0x240, 12), (0x260, 12), (0x280, 12), (0x2a0, 12), (0x2c0, 12)];

/// `count` IPv4 prefixes, none twice, in random order.
pub fn ip4(count: usize, seed: u64) -> Vec<Ip4> {
    let mut rng = Rng::with_seed(seed);
    let mut prefixes = HashSet::with_capacity(count);
    let mut end = 0;
    for (len, n) in split(IP4, count) {
        // Of short prefixes there are only so many; the next longer ones make up for them.
        end += n;
        let end = end.min(prefixes.len() + (1 << (len - 2)));
        while prefixes.len() < end {
            // 1.0.0.0 to 223.255.255.255 without 10/8 and 127/8.
            let addr = rng.u32((1 << 24)..(224 << 24));
            if !matches!(addr >> 24, 10 | 127) {
                prefixes.insert((Ipv4Addr::from_bits(addr & (u32::MAX << (32 - len))), len));
            }
        }
    }
    shuffled(prefixes, &mut rng)
}

/// `count` IPv6 prefixes, none twice, in random order.
pub fn ip6(count: usize, seed: u64) -> Vec<Ip6> {
    let mut rng = Rng::with_seed(seed);
    let mut prefixes = HashSet::with_capacity(count);
    let mut holders: Vec<(u128, u8)> = Vec::new();
    for (len, n) in split(IP6, count) {
        let end = prefixes.len() + n;
        while prefixes.len() < end {
            let (base, at) = if len <= 32 || holders.is_empty() {
                registry(&mut rng)
            } else {
                // Few holders announce many prefixes: the square of an even number leans to the front.
                let lean = rng.f64() * rng.f64();
                holders.get((lean * holders.len() as f64) as usize).copied().unwrap_or((0x2001 << 112, 16))
            };
            let addr = (base | inside(&mut rng, at, len)) & mask(len);
            if prefixes.insert((Ipv6Addr::from_bits(addr), len)) && (28..=32).contains(&len) {
                holders.push((addr, len));
            }
        }
    }
    shuffled(prefixes, &mut rng)
}

fn mask(len: u8) -> u128 {
    u128::MAX << (128 - u32::from(len))
}

fn registry(rng: &mut Rng) -> (u128, u8) {
    let (top, len) = rng.choice(REGISTRIES).unwrap_or((0x2001, 16));
    (top << (128 - u32::from(len)), len)
}

/// Bits between `from` and `to`, in hex digits that are often 0: networks are numbered from the front.
fn inside(rng: &mut Rng, from: u8, to: u8) -> u128 {
    let mut bits = 0;
    for at in (from..to).step_by(4) {
        let digit = if rng.u8(0..4) == 0 { 0 } else { rng.u8(0..16) };
        bits |= u128::from(digit) << 124 >> at;
    }
    bits
}

fn shuffled<P: Ord>(prefixes: HashSet<P>, rng: &mut Rng) -> Vec<P> {
    let mut list: Vec<P> = prefixes.into_iter().collect();
    // A set has an order of its own in each run.
    list.sort_unstable();
    rng.shuffle(&mut list);
    list
}

/// A random address inside an IPv4 prefix.
pub fn address4(prefix: Ip4, rng: &mut Rng) -> Ipv4Addr {
    let (network, len) = prefix;
    let host = u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
    Ipv4Addr::from_bits(network.to_bits() | rng.u32(..) & host)
}

/// A random address inside an IPv6 prefix.
pub fn address6(prefix: Ip6, rng: &mut Rng) -> Ipv6Addr {
    let (network, len) = prefix;
    let host = u128::MAX.checked_shr(u32::from(len)).unwrap_or(0);
    Ipv6Addr::from_bits(network.to_bits() | rng.u128(..) & host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_table() {
        assert_eq!(ip4(2_000, 7), ip4(2_000, 7));
        assert_eq!(ip6(2_000, 7), ip6(2_000, 7));
        assert_ne!(ip4(2_000, 7), ip4(2_000, 8));
    }

    #[test]
    fn there_are_as_many_prefixes_as_asked_for_and_none_twice() {
        let (four, six) = (ip4(1_000_000, 1), ip6(50_000, 1));
        assert_eq!((four.len(), six.len()), (1_000_000, 50_000));
        assert_eq!(four.iter().collect::<HashSet<_>>().len(), 1_000_000);
        assert_eq!(six.iter().collect::<HashSet<_>>().len(), 50_000);
    }

    #[test]
    fn networks_have_no_bits_beyond_their_length_and_are_unicast() {
        for (network, len) in ip4(20_000, 3) {
            assert_eq!(network.to_bits() & u32::MAX.checked_shr(u32::from(len)).unwrap_or(0), 0);
            assert!((1..224).contains(&network.octets()[0]), "{network}/{len}");
        }
        for (network, len) in ip6(20_000, 3) {
            assert_eq!(network.to_bits() & !mask(len), 0);
            assert_eq!(network.octets()[0] >> 5, 1, "{network}/{len} is not in 2000::/3");
        }
    }

    #[test]
    fn addresses_are_inside() {
        let mut rng = Rng::with_seed(1);
        let prefix = (Ipv4Addr::new(16, 1, 0, 0), 16);
        assert!((0..100).all(|_| address4(prefix, &mut rng).octets()[..2] == [16, 1]));
        let prefix = (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32);
        assert!((0..100).all(|_| address6(prefix, &mut rng).segments()[..2] == [0x2001, 0xdb8]));
    }
}
