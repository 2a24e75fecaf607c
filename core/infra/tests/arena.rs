//! The stable arena.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_infra::{StableArena, StableBox, prefetch_read};

#[test]
fn untouched_elements_are_zero_and_writes_stay() {
    let arena = StableArena::<AtomicU64>::with_capacity(1 << 30).unwrap();
    let far = arena.get((1 << 30) - 1).unwrap();
    assert_eq!(far.load(Ordering::Relaxed), 0);
    far.store(5, Ordering::Relaxed);
    assert_eq!(arena.get((1 << 30) - 1).unwrap().load(Ordering::Relaxed), 5);
    assert_eq!(arena.get(0).unwrap().load(Ordering::Relaxed), 0);
}

#[test]
fn the_capacity_is_the_bound_not_the_mapping() {
    let arena = StableArena::<[AtomicU32; 3]>::with_capacity(10).unwrap();
    assert_eq!(arena.capacity(), 10);
    assert!(arena.get(9).is_some());
    assert!(arena.get(10).is_none());
    assert!(arena.get(usize::MAX).is_none());
}

#[test]
fn prefetching_beyond_the_end_is_harmless() {
    let arena = StableArena::<AtomicU32>::with_capacity(10).unwrap();
    arena.prefetch(3);
    arena.prefetch(usize::MAX);
    prefetch_read(arena.get(3).unwrap());
}

#[test]
fn an_absurd_capacity_is_an_error() {
    assert!(StableArena::<AtomicU64>::with_capacity(usize::MAX).is_err());
    assert!(StableArena::<AtomicU64>::with_capacity(usize::MAX / 8).is_err());
}

#[test]
fn an_empty_arena_has_no_element() {
    let arena = StableArena::<AtomicU64>::with_capacity(0).unwrap();
    assert!(arena.get(0).is_none());
}

#[test]
fn a_box_is_one_zero_element_that_its_clones_share() {
    let first = StableBox::<[AtomicU64; 1_000]>::zeroed().unwrap();
    assert!(first.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    let second = first.clone();
    first[999].store(5, Ordering::Relaxed);
    drop(first);
    assert_eq!(second[999].load(Ordering::Relaxed), 5);
}
