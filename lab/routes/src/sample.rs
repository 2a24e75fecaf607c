//! Addresses that tell whether a prefix is there: each lies in one prefix of the table and in no other.
//!
//! In a table of the Internet's size a third of the prefixes lie in shorter ones. A packet to such a prefix may get through
//! long before the prefix is there.

use std::collections::HashSet;
use std::net::IpAddr;

use fastrand::Rng;

use crate::table::{Ip4, Ip6, address4, address6};

/// Tries to find an address that no longer prefix covers.
const TRIES: usize = 8;

/// Addresses in up to `most` prefixes of both families, as many of each as its share of the table; in random order.
pub fn sample(four: &[Ip4], six: &[Ip6], most: usize, seed: u64) -> Vec<IpAddr> {
    let mut rng = Rng::with_seed(seed ^ 0x7361_6d70);
    let whole = four.len() + six.len();
    let share = if most >= whole { six.len() } else { (most * six.len()).div_ceil(whole.max(1)) };
    let mut all: Vec<IpAddr> = alone4(four, most.min(whole) - share, &mut rng);
    all.extend(alone6(six, share, &mut rng));
    rng.shuffle(&mut all);
    all
}

fn alone4(table: &[Ip4], most: usize, rng: &mut Rng) -> Vec<IpAddr> {
    let all: HashSet<(u32, u8)> = table.iter().map(|(network, len)| (network.to_bits(), *len)).collect();
    let lengths = lengths(table.iter().map(|p| p.1));
    let mask = |len: u8| u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
    pick(table, most, rng, |prefix, rng| {
        let address = address4(prefix, rng);
        let mut around = lengths.iter().filter(|len| **len != prefix.1);
        (!around.any(|len| all.contains(&(address.to_bits() & mask(*len), *len)))).then_some(address.into())
    })
}

fn alone6(table: &[Ip6], most: usize, rng: &mut Rng) -> Vec<IpAddr> {
    let all: HashSet<(u128, u8)> = table.iter().map(|(network, len)| (network.to_bits(), *len)).collect();
    let lengths = lengths(table.iter().map(|p| p.1));
    let mask = |len: u8| u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
    pick(table, most, rng, |prefix, rng| {
        let address = address6(prefix, rng);
        let mut around = lengths.iter().filter(|len| **len != prefix.1);
        (!around.any(|len| all.contains(&(address.to_bits() & mask(*len), *len)))).then_some(address.into())
    })
}

fn lengths(of: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut all: Vec<u8> = of.collect::<HashSet<_>>().into_iter().collect();
    all.sort_unstable();
    all
}

/// Prefixes in random order until enough of them have an address.
fn pick<P: Copy>(
    table: &[P],
    most: usize,
    rng: &mut Rng,
    address: impl Fn(P, &mut Rng) -> Option<IpAddr>,
) -> Vec<IpAddr> {
    let mut order: Vec<P> = table.to_vec();
    rng.shuffle(&mut order);
    let mut found = Vec::with_capacity(most.min(table.len()));
    for prefix in order {
        if found.len() >= most {
            break;
        }
        found.extend((0..TRIES).find_map(|_| address(prefix, rng)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn each_address_is_in_one_prefix_only() {
        let (four, six) = (table::ip4(20_000, 1), table::ip6(5_000, 1));
        let found = sample(&four, &six, 1_000, 1);
        assert_eq!(found.len(), 1_000);
        assert_eq!(found.iter().filter(|a| a.is_ipv6()).count(), 200);
        for address in found {
            let n = match address {
                IpAddr::V4(a) => four
                    .iter()
                    .filter(|(n, len)| (n.to_bits() ^ a.to_bits()).leading_zeros() >= u32::from(*len))
                    .count(),
                IpAddr::V6(a) => six
                    .iter()
                    .filter(|(n, len)| (n.to_bits() ^ a.to_bits()).leading_zeros() >= u32::from(*len))
                    .count(),
            };
            assert_eq!(n, 1, "{address}");
        }
    }

    #[test]
    fn more_than_there_is_gives_what_there_is() {
        let (four, six) = (table::ip4(300, 1), table::ip6(100, 1));
        let found = sample(&four, &six, 100_000, 1);
        assert!((200..=400).contains(&found.len()), "{}", found.len());
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
        assert_eq!(sample(&four, &six, 100_000, 1), found);
        assert!(sample(&[], &[], 10, 1).is_empty());
    }
}
