//! The IPv4 trie against a linear scan, and under readers.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use shoal_infra::mtrie4::UpdateError;
use shoal_infra::qsbr::{Reader, reclaim};
use shoal_infra::{Mtrie4, Mtrie4Writer};

#[derive(Default)]
struct Scan(BTreeMap<(u8, u32), u32>);

fn mask(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
}

impl Scan {
    fn longest(&self, addr: u32, below: u8) -> Option<(u32, u8)> {
        let covers = |&(&(len, net), _): &(&(u8, u32), &u32)| len < below && addr & mask(len) == net;
        self.0.iter().filter(covers).map(|(&(len, _), &value)| (value, len)).next_back()
    }

    fn lookup(&self, addr: u32) -> u32 {
        self.longest(addr, 33).map_or(0, |(value, _)| value)
    }

    fn insert(&mut self, trie: &mut Mtrie4Writer, addr: u32, len: u8, value: u32) {
        self.0.insert((len, addr & mask(len)), value);
        trie.insert(addr, len, value).unwrap();
    }

    fn remove(&mut self, trie: &mut Mtrie4Writer, addr: u32, len: u8) {
        self.0.remove(&(len, addr & mask(len)));
        trie.remove(addr, len, self.longest(addr & mask(len), len)).unwrap();
    }
}

/// Few addresses, so that prefixes nest and meet again.
fn address() -> impl Strategy<Value = u32> {
    (0_u32..3, 0_u32..3, 0_u32..4, prop_oneof![Just(0_u32), Just(1), Just(127), Just(128), Just(255)])
        .prop_map(|(a, b, c, d)| a << 24 | b << 16 | c << 8 | d)
}

fn staged(trie: &Mtrie4, addr: u32) -> u32 {
    trie.prefetch_root(addr);
    let one = trie.stage1(addr);
    trie.prefetch(one, addr);
    let two = trie.stage2(one, addr);
    trie.prefetch_last(two, addr);
    trie.stage3(two, addr)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn answers_as_a_linear_scan_does(
        steps in prop::collection::vec((address(), 0_u8..=32, 1_u32..100, 0_u8..3), 1..60),
        probes in prop::collection::vec(prop_oneof![address(), any::<u32>()], 50),
    ) {
        let (trie, mut writer) = Mtrie4::new(1_000).unwrap();
        let mut scan = Scan::default();
        for &(addr, len, value, kind) in &steps {
            match kind {
                0 => scan.remove(&mut writer, addr, len),
                _ => scan.insert(&mut writer, addr, len, value),
            }
            let edges = [addr & mask(len), addr | !mask(len), addr, (addr | !mask(len)).wrapping_add(1)];
            for probe in probes.iter().copied().chain(edges) {
                prop_assert_eq!(trie.lookup(probe), scan.lookup(probe), "{:08x}", probe);
                prop_assert_eq!(staged(&trie, probe), trie.lookup(probe));
            }
        }
        let empty = Mtrie4::new(1).unwrap().1.bytes();
        for (len, net) in scan.0.keys().copied().collect::<Vec<_>>() {
            scan.remove(&mut writer, net, len);
            for &probe in &probes {
                prop_assert_eq!(trie.lookup(probe), scan.lookup(probe));
            }
        }
        prop_assert_eq!(writer.plies(), 0);
        prop_assert_eq!(writer.bytes(), empty);
    }
}

#[test]
fn a_full_trie_changes_nothing_and_recovers() {
    let (trie, mut writer) = Mtrie4::new(2).unwrap();
    writer.insert(0x0a00_0001, 32, 1).unwrap();
    let error = writer.insert(0x0b00_0001, 32, 2).unwrap_err();
    assert_eq!(error, UpdateError::Full { max_plies: 2 });
    assert_eq!((trie.lookup(0x0a00_0001), trie.lookup(0x0b00_0001)), (1, 0));
    writer.insert(0x0b00_0000, 16, 3).unwrap();
    writer.remove(0x0a00_0001, 32, None).unwrap();
    assert_eq!(writer.plies(), 0);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while writer.insert(0x0b00_0001, 32, 2).is_err() {
        assert!(std::time::Instant::now() < deadline);
        reclaim();
        thread::yield_now();
    }
    assert_eq!((trie.lookup(0x0b00_0001), trie.lookup(0x0b00_0002)), (2, 3));
}

#[test]
fn impossible_arguments_are_errors() {
    let (_trie, mut writer) = Mtrie4::new(2).unwrap();
    assert_eq!(writer.insert(0, 33, 1), Err(UpdateError::BadLength(33)));
    assert_eq!(writer.insert(0, 8, 1 << 31), Err(UpdateError::BadValue(1 << 31)));
    assert_eq!(writer.remove(0, 8, Some((1, 8))), Err(UpdateError::BadLength(8)));
    assert_eq!(writer.remove(0, 33, None), Err(UpdateError::BadLength(33)));
}

/// Two /8s live side by side. Below each, longer prefixes come and go, all with values of their
/// /8's family; so a lookup must always give a value of that family, whatever is changing, and
/// plies move between the two families as they are recycled.
#[test]
fn readers_only_see_legal_values() {
    let (trie, mut writer) = Mtrie4::new(64).unwrap();
    writer.insert(0x0a00_0000, 8, 1_000).unwrap();
    writer.insert(0x0b00_0000, 8, 2_000).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2_u32)
        .map(|seed| {
            let (trie, stop) = (Arc::clone(&trie), Arc::clone(&stop));
            thread::spawn(move || {
                let mut reader = Reader::register();
                let mut random = seed.wrapping_add(1);
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..64 {
                        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let family = random >> 31;
                        let addr = (0x0a + family) << 24 | (random >> 8) & 0x0001_03ff;
                        let value = trie.lookup(addr);
                        assert_eq!(value / 1_000, 1 + family, "{addr:08x} gave {value}");
                    }
                    reader.quiescent();
                }
            })
        })
        .collect();
    let mut random = 7_u32;
    let mut scan = Scan::default();
    scan.0.insert((8, 0x0a00_0000), 1_000);
    scan.0.insert((8, 0x0b00_0000), 2_000);
    for round in 0..20_000_u32 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let family = random >> 31;
        let addr = (0x0a + family) << 24 | (random >> 8) & 0x0001_03ff;
        let len = 9 + (random >> 3 & 0xff) as u8 % 24;
        let value = (1 + family) * 1_000 + round % 1_000;
        // Longer phases of growing and of shrinking, so that plies go and come back.
        if round / 64 % 2 == 0 {
            let net = addr & mask(len);
            scan.0.insert((len, net), value);
            if writer.insert(addr, len, value).is_err() {
                scan.0.remove(&(len, net));
            }
        } else if let Some((&(len, net), _)) = scan.0.range((9, 0)..).next_back() {
            scan.remove(&mut writer, net, len);
        }
        reclaim();
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
}
