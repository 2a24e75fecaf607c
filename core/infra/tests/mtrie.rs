//! The tries against a linear scan, and under readers.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::{Debug, LowerHex};
use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use shoal_infra::mtrie::{Address, Search, UpdateError};
use shoal_infra::qsbr::{Reader, reclaim};
use shoal_infra::{Mtrie, Mtrie4, Mtrie6, MtrieWriter};

trait Number:
    Address + Ord + Debug + LowerHex + Send + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self>
{
    fn mask(len: u8) -> Self;
    fn next(self) -> Self;
}

impl Number for u32 {
    fn mask(len: u8) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
    }
    fn next(self) -> u32 {
        self.wrapping_add(1)
    }
}

impl Number for u128 {
    fn mask(len: u8) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
    }
    fn next(self) -> u128 {
        self.wrapping_add(1)
    }
}

struct Scan<A>(BTreeMap<(u8, A), u32>);

impl<A: Number> Scan<A> {
    fn longest(&self, addr: A, below: u8) -> Option<(u32, u8)> {
        let covers = |&(&(len, net), _): &(&(u8, A), &u32)| len < below && addr & A::mask(len) == net;
        self.0.iter().filter(covers).map(|(&(len, _), &value)| (value, len)).next_back()
    }

    fn lookup(&self, addr: A) -> u32 {
        self.longest(addr, A::BITS + 1).map_or(0, |(value, _)| value)
    }

    /// Adds a prefix to both, or to none when the plies run out.
    fn insert(&mut self, trie: &mut MtrieWriter<A>, addr: A, len: u8, value: u32) {
        match trie.insert(addr, len, value) {
            Ok(()) => {
                self.0.insert((len, addr & A::mask(len)), value);
            }
            Err(error) => assert!(matches!(error, UpdateError::Full { .. }), "{error}"),
        }
    }

    fn remove(&mut self, trie: &mut MtrieWriter<A>, addr: A, len: u8) {
        self.0.remove(&(len, addr & A::mask(len)));
        trie.remove(addr, len, self.longest(addr & A::mask(len), len)).unwrap();
    }
}

/// Few addresses, so that prefixes nest and meet again.
fn address4() -> impl Strategy<Value = u32> {
    (0_u32..3, 0_u32..3, 0_u32..4, prop_oneof![Just(0_u32), Just(1), Just(127), Just(128), Just(255)])
        .prop_map(|(a, b, c, d)| a << 24 | b << 16 | c << 8 | d)
}

/// Zero but for a few bytes anywhere.
fn address6() -> impl Strategy<Value = u128> {
    let byte = (0_u32..16, prop_oneof![Just(1_u128), Just(128), Just(255)]);
    prop::collection::vec(byte, 0..4)
        .prop_map(|bytes| bytes.iter().fold(0, |addr, &(at, byte)| addr | byte << (8 * at)))
}

/// In one /32, and near each other.
fn neighbour6() -> impl Strategy<Value = u128> {
    let byte = prop_oneof![Just(0_u128), Just(1), Just(0x80), Just(0xff), 0_u128..256];
    let byte = || byte.clone();
    (byte(), byte(), byte(), byte(), byte())
        .prop_map(|(a, b, c, d, e)| 0x2001_0db8 << 96 | a << 88 | b << 80 | c << 72 | d << 64 | e << 56)
}

fn stepped<A: Address>(trie: &Mtrie<A>, addr: A) -> u32 {
    trie.prefetch_root(addr);
    let mut entry = trie.root(addr);
    for level in 1..=A::LEVELS {
        trie.prefetch_step(entry, addr, level);
        entry = trie.step(entry, addr, level);
    }
    assert!(entry.is_final());
    entry.value()
}

fn staged(trie: &Mtrie4, addr: u32) -> u32 {
    let one = trie.stage1(addr);
    trie.prefetch(one, addr);
    let two = trie.stage2(one, addr);
    trie.prefetch_last(two, addr);
    trie.stage3(two, addr)
}

/// Kinds 0 and 1 remove, of which 1 something that is there; the others add or replace.
type Step<A> = (A, u8, u32, u8);

fn compare<A: Number>(max_plies: usize, steps: &[Step<A>], probes: &[A]) -> Result<(), TestCaseError> {
    let (trie, mut writer) = Mtrie::<A>::new(max_plies).unwrap();
    let empty = writer.bytes();
    let mut scan = Scan(BTreeMap::new());
    for &(addr, len, value, kind) in steps {
        let present = scan.0.range((len, addr)..).next().map(|(&prefix, _)| prefix);
        match (kind, present) {
            (0, _) => scan.remove(&mut writer, addr, len),
            (1, Some((len, net))) => scan.remove(&mut writer, net, len),
            _ => scan.insert(&mut writer, addr, len, value),
        }
        reclaim();
        let last = addr | !A::mask(len);
        let edges = [addr & A::mask(len), last, addr, last.next()];
        for probe in probes.iter().copied().chain(edges) {
            prop_assert_eq!(trie.lookup(probe), scan.lookup(probe), "{:x}", probe);
            prop_assert_eq!(stepped(&trie, probe), trie.lookup(probe));
        }
        for probes in probes.chunks(32) {
            let mut searches: Vec<Search<A>> = probes.iter().map(|probe| Search::of(*probe)).collect();
            trie.seek(&mut searches);
            for (search, probe) in searches.iter().zip(probes) {
                prop_assert_eq!(search.value(), trie.lookup(*probe), "{:x}", probe);
            }
        }
        prop_assert!(writer.plies() <= max_plies);
        // Plies of 256 slots take 1,344 bytes, those of 16 slots 84.
        let (least, most) = (writer.plies() * if A::BITS == 32 { 1_344 } else { 84 }, writer.plies() * 1_344);
        prop_assert!((empty + least..=empty + most).contains(&writer.bytes()));
    }
    for (len, net) in scan.0.keys().copied().collect::<Vec<_>>() {
        scan.remove(&mut writer, net, len);
        for &probe in probes {
            prop_assert_eq!(trie.lookup(probe), scan.lookup(probe));
        }
    }
    prop_assert_eq!((writer.plies(), writer.bytes()), (0, empty));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn answers_as_a_linear_scan_does_for_ip4(
        max_plies in prop_oneof![Just(5_usize), Just(1_000)],
        steps in prop::collection::vec((address4(), 0_u8..=32, 1_u32..100, 0_u8..4), 1..60),
        probes in prop::collection::vec(prop_oneof![address4(), any::<u32>()], 50),
    ) {
        compare(max_plies, &steps, &probes)?;
    }

    #[test]
    fn answers_as_a_linear_scan_does_for_ip6(
        max_plies in prop_oneof![Just(60_usize), Just(2_000)],
        steps in prop::collection::vec((address6(), 0_u8..=128, 1_u32..100, 0_u8..4), 1..60),
        probes in prop::collection::vec(prop_oneof![address6(), any::<u128>()], 50),
    ) {
        compare(max_plies, &steps, &probes)?;
    }

    #[test]
    fn answers_as_a_linear_scan_does_where_ip6_prefixes_crowd(
        max_plies in prop_oneof![Just(60_usize), Just(2_000)],
        steps in prop::collection::vec((neighbour6(), 30_u8..=67, 1_u32..100, 0_u8..5), 1..120),
        probes in prop::collection::vec(neighbour6(), 50),
    ) {
        compare(max_plies, &steps, &probes)?;
    }

    #[test]
    fn all_of_a_group_may_seek_the_same(
        prefixes in prop::collection::vec((neighbour6(), 0_u8..=128, 1_u32..100), 1..40),
        probe in neighbour6(),
        n in 1_usize..33,
    ) {
        let (trie, mut writer) = Mtrie6::new(1_000).unwrap();
        for (addr, len, value) in prefixes {
            writer.insert(addr, len, value).unwrap();
        }
        let mut all = vec![Search::of(probe); n];
        trie.seek(&mut all);
        prop_assert!(all.iter().all(|search| search.value() == trie.lookup(probe)));
        trie.seek(&mut []);
    }

    #[test]
    fn the_stages_of_ip4_are_its_lookup(
        prefixes in prop::collection::vec((address4(), 0_u8..=32, 1_u32..100), 1..20),
        probes in prop::collection::vec(address4(), 50),
    ) {
        let (trie, mut writer) = Mtrie4::new(1_000).unwrap();
        for (addr, len, value) in prefixes {
            writer.insert(addr, len, value).unwrap();
        }
        for probe in probes {
            prop_assert_eq!(staged(&trie, probe), trie.lookup(probe));
        }
    }
}

#[test]
fn every_length_of_ip6_ends_where_it_should() {
    let (trie, mut writer) = Mtrie6::new(100).unwrap();
    let empty = writer.bytes();
    let addr = 0x2001_0db8_0102_0304_8506_0708_890a_0b0d_u128;
    for len in 0..=128_u8 {
        writer.insert(addr, len, 1 + u32::from(len)).unwrap();
        let (wide, narrow) = (len.clamp(16, 32) - 16, len.saturating_sub(32));
        let (wide, narrow) = (usize::from(wide.div_ceil(8)), usize::from(narrow.div_ceil(4)));
        // The last few prefixes are in a bucket, which is as large as a small ply.
        let lines = writer.plies() - wide;
        assert!(
            lines <= narrow && lines + 2 > narrow.min(1) + narrow.saturating_sub(2),
            "/{len}: {lines} lines"
        );
        assert_eq!(writer.bytes(), empty + wide * 1_344 + lines * 84);
    }
    for len in 0..=128_u8 {
        // The first bit that differs is the one after the prefix.
        let other = if len == 128 { addr } else { addr ^ 1 << (127 - len) };
        assert_eq!(trie.lookup(other), 1 + u32::from(len), "{other:x}");
    }
    for len in (0..=128_u8).rev() {
        assert_eq!(trie.lookup(addr), 1 + u32::from(len));
        let cover = len.checked_sub(1).map(|cover| (1 + u32::from(cover), cover));
        writer.remove(addr, len, cover).unwrap();
    }
    assert_eq!((trie.lookup(addr), writer.plies()), (0, 0));
}

#[test]
fn the_edges_of_the_address_space_are_addresses() {
    let (trie, mut writer) = Mtrie6::new(100).unwrap();
    writer.insert(0, 128, 1).unwrap();
    writer.insert(u128::MAX, 128, 2).unwrap();
    assert_eq!([0, 1, u128::MAX - 1, u128::MAX].map(|addr| trie.lookup(addr)), [1, 0, 0, 2]);
    let (trie, mut writer) = Mtrie4::new(100).unwrap();
    writer.insert(0, 32, 1).unwrap();
    writer.insert(u32::MAX, 32, 2).unwrap();
    assert_eq!([0, 1, u32::MAX - 1, u32::MAX].map(|addr| trie.lookup(addr)), [1, 0, 0, 2]);
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
fn too_few_plies_for_the_whole_way_take_none() {
    let (trie, mut writer) = Mtrie6::new(32).unwrap();
    let (here, there) = (0x2001_u128 << 112 | 1, 0x2002_u128 << 112 | 1);
    writer.insert(here, 128, 1).unwrap();
    assert_eq!(writer.insert(there, 128, 2), Err(UpdateError::Full { max_plies: 32 }));
    assert_eq!((writer.plies(), trie.lookup(there)), (26, 0));
    // Six are left. The first way needs fifteen, the others five and one.
    assert_eq!(writer.insert(here ^ 1 << 60, 128, 2), Err(UpdateError::Full { max_plies: 32 }));
    writer.insert(here ^ 1 << 22, 128, 3).unwrap();
    writer.insert(there, 24, 4).unwrap();
    assert_eq!([here, here ^ 1 << 22, here ^ 1 << 60, there].map(|addr| trie.lookup(addr)), [1, 3, 0, 4]);
    assert_eq!(writer.plies(), 32);
}

#[test]
fn impossible_arguments_are_errors() {
    let (_trie, mut writer) = Mtrie4::new(2).unwrap();
    assert_eq!(writer.insert(0, 33, 1), Err(UpdateError::BadLength(33)));
    assert_eq!(writer.insert(0, 8, 1 << 31), Err(UpdateError::BadValue(1 << 31)));
    assert_eq!(writer.remove(0, 8, Some((1, 8))), Err(UpdateError::BadLength(8)));
    assert_eq!(writer.remove(0, 33, None), Err(UpdateError::BadLength(33)));
    let (_trie, mut writer) = Mtrie6::new(2).unwrap();
    assert_eq!(writer.insert(0, 129, 1), Err(UpdateError::BadLength(129)));
    assert_eq!(writer.remove(0, 255, None), Err(UpdateError::BadLength(255)));
}

/// Two prefixes of 8 bits live side by side. Below each, longer ones come and go, all with values of
/// its family; so a lookup must always give a value of that family, whatever is changing, and plies
/// move between the two families as they are recycled.
fn readers_only_see_legal_values<A: Number + 'static>(place: fn(family: u32, bits: u32) -> A) {
    let (trie, mut writer) = Mtrie::<A>::new(64).unwrap();
    let mut scan = Scan(BTreeMap::new());
    scan.insert(&mut writer, place(0, 0), 8, 1_000);
    scan.insert(&mut writer, place(1, 0), 8, 2_000);
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
                        let addr = place(family, random >> 8);
                        let value = trie.lookup(addr);
                        assert_eq!(value / 1_000, 1 + family, "{addr:x} gave {value}");
                    }
                    reader.quiescent();
                }
            })
        })
        .collect();
    let mut random = 7_u32;
    for round in 0..20_000_u32 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let family = random >> 31;
        let len = 9 + (random >> 3 & 0xff) as u8 % (A::BITS - 8);
        let value = (1 + family) * 1_000 + round % 1_000;
        // Longer phases of growing and of shrinking, so that plies go and come back.
        if round / 64 % 2 == 0 {
            scan.insert(&mut writer, place(family, random >> 8), len, value);
        } else if let Some((&(len, net), _)) = scan.0.iter().next_back().filter(|((len, _), _)| *len > 8) {
            scan.remove(&mut writer, net, len);
        }
        reclaim();
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn readers_of_ip4_only_see_legal_values() {
    readers_only_see_legal_values(|family, bits| (0x0a + family) << 24 | bits & 0x0001_03ff);
}

#[test]
fn readers_of_ip6_only_see_legal_values_where_prefixes_crowd() {
    readers_only_see_legal_values(|family, bits| {
        let bits = u128::from(bits);
        u128::from(0x20 + family) << 120 | (bits & 0xf) << 88 | (bits & 0x70) << 72 | (bits & 0x380) << 58
    });
}

#[test]
fn readers_of_ip6_only_see_legal_values() {
    readers_only_see_legal_values(|family, bits| {
        let bits = u128::from(bits);
        u128::from(0x20 + family) << 120 | (bits & 3) << 110 | (bits & 4) << 76 | (bits & 0x0001_0018) >> 3
    });
}
