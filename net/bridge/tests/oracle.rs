//! The MAC table against a map, with random operations; and with threads that teach it at once, while it grows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use shoal_bridge::fib::{MacTable, Refused};
use shoal_bridge::{Entry, Key};
use shoal_flow::Seed;
use shoal_interface::SwIfIndex;
use shoal_testkit::Rng;
use shoal_wire::MacAddress;

fn key(n: u64, domain: u16) -> Key {
    Key::new(MacAddress::from_u64(0x02_00_00_00_00_00 | n), domain)
}

fn entry(n: u32) -> Entry {
    Entry::new(SwIfIndex(1 + n % 1000), 0, (n >> 3) as u8, n as u16)
}

#[test]
fn random_operations_leave_what_a_map_has() {
    let seed = Rng::seed(31);
    let mut rng = Rng::new(seed);
    // Small, so that buckets run over.
    let table = MacTable::new(256, Seed::fixed(seed)).unwrap();
    let mut map: HashMap<Key, Entry> = HashMap::new();
    let mut refused = 0;
    for step in 0..200_000 {
        let key = key(rng.below(700) as u64, 1 + rng.below(2) as u16);
        let search = table.search(key);
        let found = table.find(&search);
        assert_eq!(found.map(|f| f.entry), map.get(&key).copied(), "step {step}, SHOAL_SEED={seed}");
        match rng.below(10) {
            0..5 => {
                let new = entry(rng.next_u64() as u32);
                match table.enter(key, new) {
                    Ok(()) => assert_eq!(map.insert(key, new), None),
                    Err(Refused::Known) => assert!(map.contains_key(&key)),
                    Err(Refused::Full) => refused += 1,
                    Err(Refused::Busy) => panic!("one thread"),
                }
            }
            5..7 => {
                let new = entry(rng.next_u64() as u32);
                if let Some(found) = found {
                    assert!(table.change(&found, new));
                    // The place is not what was found any more, unless it says the same.
                    assert_eq!(table.change(&found, new), found.entry == new);
                    map.insert(key, new);
                }
            }
            _ => assert_eq!(table.remove(key), map.remove(&key)),
        }
        assert_eq!(table.len(), map.len());
    }
    println!("{refused} refused");
    let mut all: Vec<_> = table.groups().flat_map(|group| table.entries(group)).collect();
    let mut wanted: Vec<_> = map.into_iter().collect();
    all.sort_by_key(|(key, _)| *key);
    wanted.sort_by_key(|(key, _)| *key);
    assert_eq!(all, wanted);
    for (key, _) in wanted {
        table.remove(key).unwrap();
    }
    assert!(table.is_empty());
    // Nothing is left that would make a look-up longer: each bucket takes its three again.
    let entered = (0..2_000).filter(|n| table.enter(self::key(*n, 3), entry(1)).is_ok()).count();
    assert!(entered > 500, "{entered} of 768");
}

#[test]
fn four_of_the_six_million_entries_fit() {
    // The same load as four million in the router's table, in a smaller one.
    let table = MacTable::new(1 << 15, Seed::fixed(7)).unwrap();
    let load = (1_u64 << 22) >> 6;
    for n in 0..load {
        table.enter(key(n, 1), entry(n as u32)).unwrap_or_else(|e| panic!("{n}: {e:?}"));
    }
    assert!((0..load).all(|n| table.find(&table.search(key(n, 1))).is_some()));
    assert_eq!(table.len() as u64, load);
}

#[test]
fn threads_that_teach_the_same_stations_enter_each_once() {
    let table = MacTable::new(1 << 10, Seed::fixed(5)).unwrap();
    const STATIONS: u64 = 1_500;
    thread::scope(|scope| {
        for t in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..20 {
                    for n in 0..STATIONS {
                        let search = table.search(key(n, 1));
                        match table.find(&search) {
                            Some(found) => {
                                table.change(&found, entry(t * 1000 + round));
                            }
                            None => drop(table.enter(key(n, 1), entry(t))),
                        }
                    }
                }
            });
        }
    });
    let all: Vec<_> = table.groups().flat_map(|group| table.entries(group)).collect();
    let mut keys: Vec<Key> = all.iter().map(|(key, _)| *key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), all.len()), (STATIONS as usize, STATIONS as usize));
}

#[test]
fn it_is_as_large_as_its_content_asks_for() {
    let table = MacTable::new(1 << 15, Seed::fixed(11)).unwrap();
    assert_eq!(table.bytes(), 4096);
    for n in 0..20_000_u64 {
        table.enter(key(n, 1), entry(n as u32)).unwrap();
        assert_eq!(table.bytes() / 64, table.len().max(64), "buckets for {} stations", table.len());
        // The one just entered, and one that has been there for long.
        for there in [n, n / 2] {
            let found = table.find(&table.search(key(there, 1))).map(|found| found.entry);
            assert_eq!(found, Some(entry(there as u32)), "of {n}");
        }
    }
    assert!((0..20_000).all(|n| table.remove(key(n, 1)) == Some(entry(n as u32))));
    assert!(table.is_empty());
    assert_eq!(table.groups().map(|group| table.occupied(group)).sum::<u32>(), 0);
}

#[test]
fn stations_are_found_and_stay_what_they_are_while_threads_make_the_table_grow() {
    const EACH: u64 = 30_000;
    let table = MacTable::new(1 << 17, Seed::fixed(13)).unwrap();
    let over = AtomicBool::new(false);
    let removed = thread::scope(|scope| {
        // Each thread teaches stations of its own, and looks for them and says something new of them.
        let teachers: Vec<_> = (0..3_u64)
            .map(|t| {
                let table = &table;
                scope.spawn(move || {
                    let mut rng = Rng::new(t);
                    let mut known: Vec<Entry> = Vec::new();
                    for n in 0..EACH {
                        let new = entry(n as u32);
                        let station = key(t << 32 | n, 1);
                        while let Err(why) = table.enter(station, new) {
                            assert_ne!(why, Refused::Known);
                        }
                        known.push(new);
                        for _ in 0..3 {
                            let at = rng.below(known.len());
                            let search = table.search(key(t << 32 | at as u64, 1));
                            let found = table.find(&search).unwrap_or_else(|| panic!("{at} of {n}"));
                            let new = entry(rng.next_u64() as u32);
                            if table.change(&found, new) {
                                known[at] = new;
                            }
                        }
                    }
                    for (n, known) in known.iter().enumerate() {
                        let found = table.find(&table.search(key(t << 32 | n as u64, 1)));
                        assert_eq!(found.map(|found| found.entry), Some(*known), "{n} of thread {t}");
                    }
                })
            })
            .collect();
        // The control plane enters stations and takes them away.
        let control = scope.spawn(|| {
            let mut removed = 0;
            while !over.load(Ordering::Acquire) {
                let all = (removed..removed + 50).map(|n| key(9 << 32 | n, 2));
                for key in all.clone() {
                    while table.enter(key, entry(7)).is_err() {}
                }
                for key in all {
                    assert_eq!(table.remove(key), Some(entry(7)));
                    assert!(table.find(&table.search(key)).is_none());
                    removed += 1;
                }
            }
            removed
        });
        let taught: Vec<_> = teachers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Release);
        for taught in taught {
            taught.unwrap();
        }
        control.join().unwrap()
    });
    assert!(removed > 0);
    assert_eq!(table.len() as u64, 3 * EACH);
    let all: Vec<_> = table.groups().flat_map(|group| table.entries(group)).collect();
    assert_eq!(all.len(), table.len());
}
