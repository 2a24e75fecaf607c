//! What a full IPv6 table costs: memory per route, inserts, withdrawals and lookups per second.
//! `cargo run --release -p shoal-infra --example ip6_table`
//!
//! 230,000 prefixes with about the length distribution of the Internet's table. Networks of providers lie one after
//! the other, with gaps, in the blocks of the registries; each longer prefix lies in a provider's network, where few
//! providers announce many and most a few, and numbers begin from the low end.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use shoal_infra::{Mtrie6, qsbr};

const ROUTES: usize = 230_000;
/// Lengths and how many of 1,000 prefixes have them.
const LENGTHS: [(u8, usize); 22] = [
    (48, 480),
    (32, 130),
    (44, 100),
    (40, 90),
    (36, 60),
    (29, 50),
    (46, 15),
    (47, 13),
    (45, 8),
    (42, 10),
    (38, 6),
    (34, 5),
    (33, 10),
    (35, 3),
    (30, 3),
    (31, 2),
    (28, 3),
    (24, 2),
    (20, 1),
    (56, 4),
    (52, 2),
    (64, 3),
];
/// The blocks that the registries give networks from.
const BLOCKS: [u128; 6] = [0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((self.next() >> 32) * limit) >> 32
    }

    /// Any number below the limit, small ones far more often than large ones.
    fn small(&mut self, limit: u64) -> u64 {
        let first = self.below(limit) + 1;
        let second = self.below(first) + 1;
        self.below(second)
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// As many times each length as there are prefixes of it.
fn lengths(of: impl Fn(u8) -> bool) -> Vec<u8> {
    let lengths = LENGTHS.iter().filter(|(len, _)| of(*len));
    lengths.flat_map(|&(len, parts)| std::iter::repeat_n(len, ROUTES * parts / 1_000)).collect()
}

/// Networks of providers, one after the other in each block.
fn providers(random: &mut Random) -> Vec<(u128, u8)> {
    let mut next = BLOCKS.map(|block| block << 112);
    let mut lengths = lengths(|len| len <= 32);
    random.shuffle(&mut lengths);
    let mut all = Vec::new();
    for len in lengths {
        let block = random.below(BLOCKS.len() as u64) as usize;
        let Some(next) = next.get_mut(block) else { continue };
        // Mostly there is room left for growth, up to a /29.
        let unit = 1 << (128 - if random.below(4) == 0 { len } else { len.min(29) });
        let network = next.next_multiple_of(unit).next_multiple_of(1 << (128 - len));
        *next = network + (1 << (128 - len));
        all.push((network, len));
    }
    random.shuffle(&mut all);
    all
}

fn table() -> Vec<(u128, u8)> {
    let mut random = Random(88_172_645_463_325_252);
    let providers = providers(&mut random);
    let mut routes: BTreeSet<(u128, u8)> = providers.iter().copied().collect();
    for len in lengths(|len| len > 32) {
        let before = routes.len();
        while routes.len() == before {
            let provider = random.small(providers.len() as u64) as usize;
            let Some(&(network, _)) = providers.get(provider) else { continue };
            let number = random.small(1 << (len - 32).min(20));
            routes.insert((network | u128::from(number) << (128 - len), len));
        }
    }
    let mut routes: Vec<_> = routes.into_iter().collect();
    random.shuffle(&mut routes);
    routes
}

/// The longest shorter prefix of those that cover this one.
fn cover(routes: &BTreeMap<(u128, u8), u32>, addr: u128, len: u8) -> Option<(u32, u8)> {
    (16..len).rev().find_map(|shorter| {
        let network = addr >> (128 - shorter) << (128 - shorter);
        routes.get(&(network, shorter)).map(|&value| (value, shorter))
    })
}

fn rate(what: &str, count: usize, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!("{what}: {:.0} per second", count as f64 / seconds);
}

fn main() -> Result<(), Box<dyn Error>> {
    let routes = table();
    for sorted in [false, true] {
        let mut routes = routes.clone();
        if sorted {
            routes.sort_unstable();
        }
        let order = if sorted { "in order" } else { "shuffled" };
        let (trie, mut writer) = Mtrie6::new(1 << 20)?;
        let since = Instant::now();
        for (value, &(addr, len)) in (1..).zip(&routes) {
            writer.insert(addr, len, value)?;
        }
        rate(&format!("inserts, {order}"), routes.len(), since);
        let (plies, bytes) = (writer.plies(), writer.bytes());
        println!("{} routes, {plies} plies, {bytes} bytes, {} per route", routes.len(), bytes / routes.len());

        let since = Instant::now();
        for &(addr, _) in &routes {
            black_box(trie.lookup(black_box(addr | 1)));
        }
        rate(&format!("lookups, {order}, one by one"), routes.len(), since);

        let since = Instant::now();
        writer.insert(0, 0, 1)?;
        println!("a default route afterwards: {:?}", since.elapsed());
        writer.remove(0, 0, None)?;

        let mut left: BTreeMap<_, _> = routes.iter().copied().zip(1..).collect();
        let mut spent = Duration::ZERO;
        for &(addr, len) in &routes {
            left.remove(&(addr, len));
            let cover = cover(&left, addr, len);
            let since = Instant::now();
            writer.remove(addr, len, cover)?;
            spent += since.elapsed();
        }
        println!("withdrawals, {order}: {:.0} per second", routes.len() as f64 / spent.as_secs_f64());
        println!("{} plies left", writer.plies());
        while qsbr::reclaim() > 0 {}
    }
    Ok(())
}
