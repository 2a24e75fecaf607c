//! Buffers that are lent to somebody outside, as their lenders see them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::sync::Arc;

use proptest::prelude::*;
use shoal_buffer::{BUFFER_SIZE, Buffer, Cache, DATA_SIZE, Fresh, Loans, Pages, Pool, PoolConfig, STRIDE};

fn pool(buffers: usize) -> Arc<Pool> {
    Pool::new(PoolConfig { name: "test".into(), buffers, most: 2 * buffers, pages: Pages::Small }).unwrap()
}

fn all(cache: &mut Cache) -> Vec<Buffer> {
    std::iter::from_fn(|| cache.alloc_one()).collect()
}

fn start(buffer: &Buffer) -> u64 {
    u64::from(buffer.number()) * 64
}

#[test]
fn a_lent_buffer_comes_back_once_as_an_empty_packet() {
    let pool = pool(8);
    let mut cache = pool.cache();
    let mut loans = Loans::new(&pool, pool.part().unwrap());
    let buffer = cache.alloc_data(b"hello").unwrap();
    let at = start(&buffer);
    assert!(loans.covers(&buffer));
    assert_eq!((loans.lend(buffer).unwrap(), loans.len()), (at, 1));
    for wrong in [0, at + 1, at + 64, at + STRIDE as u64, at - 1, u64::MAX] {
        assert!(loans.take_back(wrong).is_none() && loans.give_back(wrong, &mut cache).is_none(), "{wrong}");
    }
    let mut buffer = loans.take_back(at).unwrap();
    assert!(cache.packet(&mut buffer).is_empty());
    assert_eq!(cache.packet(&mut buffer).put(5).unwrap(), b"hello", "its bytes are as they were");
    assert!(loans.take_back(at).is_none() && loans.is_empty());
    assert_eq!(Loans::start_of(at + BUFFER_SIZE as u64 - 1), at);
    cache.free(buffer);
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_chain_is_not_lent_but_its_parts_are() {
    let pool = pool(8);
    let mut cache = pool.cache();
    let mut loans = Loans::new(&pool, pool.part().unwrap());
    let mut chain = cache.alloc_data(&[7; 2 * DATA_SIZE + 1]).unwrap();
    assert_eq!(loans.covers_all(&cache.packet(&mut chain)), Some(3));
    let mut chain = loans.lend(chain).unwrap_err();
    let mut rest = cache.packet(&mut chain).take_rest().unwrap();
    loans.lend(chain).unwrap();
    while let Some(mut part) = rest {
        rest = cache.packet(&mut part).take_rest().unwrap();
        loans.lend(part).unwrap();
    }
    assert_eq!((loans.len(), loans.settle()), (3, 3));
    let mut empty = cache.alloc_data(b"x").unwrap();
    let end = cache.alloc_one().unwrap();
    cache.packet(&mut empty).append_segment(end).unwrap();
    let loans = Loans::new(&pool, pool.part().unwrap());
    assert_eq!(loans.covers_all(&cache.packet(&mut empty)), None, "a segment without bytes");
    cache.free(empty);
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn memory_that_came_later_or_lies_across_two_large_pages_is_not_lent() {
    let pool = pool(2000);
    let mut cache = pool.cache();
    let part = pool.part().unwrap();
    let mut loans = Loans::new(&pool, part);
    let buffers = all(&mut cache);
    let page = |address: u64| address / (2 << 20);
    let (whole, across): (Vec<_>, Vec<_>) =
        buffers.into_iter().partition(|b| page(start(b)) == page(start(b) + BUFFER_SIZE as u64 - 1));
    assert!(!across.is_empty() && across.len() < 8, "{}", across.len());
    assert!(whole.iter().all(|b| loans.covers(b)));
    for buffer in across {
        let buffer = loans.lend(buffer).unwrap_err();
        cache.free(buffer);
    }
    let half = Loans::new(&pool, part.up_to(part.len() / 2));
    assert!(whole.iter().any(|b| !half.covers(b)), "beyond what the borrower knows");
    for b in whole {
        cache.free(b);
    }
    // What comes later is taken last.
    assert_eq!(pool.grow(10).unwrap(), 10);
    assert!(matches!(loans.lend_fresh(&mut cache), Some(Fresh::Lent(_))));
    loans.settle();
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_book_that_is_dropped_keeps_its_buffers_and_one_that_is_settled_does_not() {
    let pool = pool(300);
    let mut cache = pool.cache();
    let lend = |loans: &mut Loans, cache: &mut Cache, n: usize| {
        let mut outside = Vec::new();
        while loans.len() < n {
            if let Some(Fresh::Outside(buffer)) = loans.lend_fresh(cache) {
                outside.push(buffer);
            }
        }
        for buffer in outside {
            cache.free(buffer);
        }
    };
    let mut loans = Loans::new(&pool, pool.part().unwrap());
    lend(&mut loans, &mut cache, 200);
    let taken = loans.take();
    assert_eq!((loans.len(), taken.len(), pool.stats().used), (0, 200, 200));
    assert_eq!((taken.settle(), pool.stats().used), (200, 0));
    let mut numbers: Vec<u32> = all(&mut cache)
        .into_iter()
        .map(|b| {
            let number = b.number();
            pool.cache().free(b);
            number
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 300, "each is there once");
    let mut loans = Loans::new(&pool, pool.part().unwrap());
    lend(&mut loans, &mut cache, 5);
    drop(loans);
    drop(cache);
    assert_eq!(pool.stats().used, 5, "better lost than somebody else's");
}

#[test]
fn an_empty_cache_lends_nothing() {
    let pool = pool(4);
    let mut cache = pool.cache();
    let held = all(&mut cache);
    let mut loans = Loans::new(&pool, pool.part().unwrap());
    assert!(loans.lend_fresh(&mut cache).is_none() && loans.is_empty());
    for b in held {
        cache.free(b);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a borrower says it gives back: what was lent comes back once, and nothing else does.
    #[test]
    fn only_what_was_lent_comes_back(
        steps in prop::collection::vec((0..4u8, 0..64usize, -70i64..70), 1..200),
    ) {
        let pool = pool(64);
        let mut cache = pool.cache();
        let mut loans = Loans::new(&pool, pool.part().unwrap());
        let starts: Vec<u64> = {
            let buffers = all(&mut cache);
            let starts = buffers.iter().map(start).collect();
            for b in buffers {
                cache.free(b);
            }
            starts
        };
        let (mut lent, mut held) = (std::collections::BTreeSet::new(), Vec::new());
        for (step, which, off) in steps {
            let off = if off.abs() > 6 { 0 } else { off };
            let address = starts[which].wrapping_add_signed(off);
            match step {
                0 => match loans.lend_fresh(&mut cache) {
                    Some(Fresh::Lent(at)) => prop_assert!(lent.insert(at)),
                    Some(Fresh::Outside(buffer)) => cache.free(buffer),
                    None => prop_assert_eq!(lent.len() + held.len(), 64),
                },
                1 => {
                    if let Some(buffer) = held.pop() {
                        match loans.lend(buffer) {
                            Ok(at) => prop_assert!(lent.insert(at)),
                            Err(buffer) => cache.free(buffer),
                        }
                    }
                }
                2 => {
                    let back = loans.take_back(address);
                    prop_assert_eq!(back.is_some(), lent.remove(&address));
                    held.extend(back);
                }
                _ => prop_assert_eq!(loans.give_back(address, &mut cache).is_some(), lent.remove(&address)),
            }
            prop_assert_eq!(loans.len(), lent.len());
            prop_assert_eq!(pool.stats().used, lent.len() + held.len());
        }
        for b in held {
            cache.free(b);
        }
        prop_assert_eq!(loans.settle(), lent.len());
        drop(cache);
        prop_assert_eq!(pool.stats().used, 0);
    }
}
