//! Keys that were chosen to meet in few buckets.

use super::check;
use crate::{FlowKey, FlowTable, Handle, InsertError, Ip4Flow, Seed, Settings, TableId, Tick, Timeout};

/// A key whose hash is that of its first word alone: what an attacker would have who knew the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Colliding(u64, u64);

impl FlowKey for Colliding {
    type Words = [u64; 1];

    fn words(&self) -> [u64; 1] {
        [self.0]
    }
}

fn table<K: FlowKey>(flows: u32, seed: u64) -> FlowTable<K, u64> {
    FlowTable::new(Settings::flows(flows).seed(Seed::fixed(seed)), Tick(0)).unwrap()
}

#[test]
fn keys_of_equal_hash_are_refused_when_two_buckets_are_full_and_others_are_not_harmed() {
    for seed in 0..50 {
        let mut table = table::<Colliding>(10_000, seed);
        let others = |n: u64| Colliding(n + 1, 0);
        for n in 0..2000 {
            table.insert(others(n), n, Timeout::new(0), Tick(0)).unwrap();
        }
        let mut chosen: Vec<Handle> = Vec::new();
        let mut refused = 0;
        for n in 0..1000 {
            match table.insert(Colliding(0, n), n, Timeout::new(0), Tick(0)) {
                Ok(handle) => chosen.push(handle),
                Err(InsertError::Crowded) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        // Two buckets of twelve, one if the hash names the same twice; a few others may find no room elsewhere.
        assert!((8..=24).contains(&chosen.len()), "{}", chosen.len());
        assert_eq!((table.usage().crowded, chosen.len() + refused), (refused as u64, 1000));
        check(&table);
        for n in 0..2000 {
            assert_eq!(table.peek(&table.search(others(n))), Some(&n));
        }
        // What is removed makes room again.
        assert_eq!(table.remove(chosen[0]), Some((Colliding(0, 0), 0)));
        assert!(table.insert(Colliding(0, 5000), 1, Timeout::new(0), Tick(0)).is_ok());
        check(&table);
    }
}

/// Growth goes on beside buckets that are full of one hash, which no split empties.
#[test]
fn growth_passes_buckets_that_stay_full() {
    let mut table = table::<Colliding>(100_000, 3);
    let mut chosen = 0;
    for n in 0..60_000 {
        if n % 1000 == 0 {
            chosen += u64::from(table.insert(Colliding(0, n), n, Timeout::new(0), Tick(0)).is_ok());
        }
        table.insert(Colliding(n + 1, 0), n, Timeout::new(0), Tick(0)).unwrap();
    }
    check(&table);
    assert_eq!(table.len() as u64, 60_000 + chosen);
    assert!((12..=24).contains(&chosen), "{chosen}");
}

/// Flows that were chosen to meet in one bucket of one table are spread in another, whose seed the chooser does not know.
#[test]
fn what_collides_under_one_seed_does_not_under_another() {
    let (known, secret) = (Seed::fixed(1), Seed::fixed(2));
    let flow = |n: u32| Ip4Flow::new((n.into(), 1), ([192, 0, 2, 1].into(), 80), 6, TableId::DEFAULT);
    // Of 2^20 flows those whose hash ends in the same 8 bits, in both parts that name buckets.
    let alike = |n: &u32| known.hash(&flow(*n).words()) & 0xf000_000f == 0;
    let chosen: Vec<u32> = (0..1 << 20).filter(alike).collect();
    assert!(chosen.len() > 3000);
    let mut counts = [0; 64];
    for &n in &chosen {
        counts[secret.hash(&flow(n).words()) as usize % 64] += 1;
    }
    let mean = chosen.len() / 64;
    assert!(counts.iter().all(|&count| count > mean / 2 && count < mean * 2), "{counts:?}");
    let mut table = FlowTable::new(Settings::flows(10_000).seed(secret), Tick(0)).unwrap();
    for &n in &chosen {
        table.insert(flow(n), n, Timeout::new(0), Tick(0)).unwrap();
    }
    check(&table);
}
