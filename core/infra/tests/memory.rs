//! Regions and shared segments.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use shoal_infra::{Backing, Pages, Region, SharedSegment, StableVec};

const MB: usize = 1 << 20;

#[test]
fn a_region_grows_in_place_up_to_its_limit() {
    for pages in [Pages::Huge, Pages::Transparent, Pages::Small] {
        let mut region = Region::reserve(6 * MB, pages).unwrap();
        let base = region.base();
        assert_eq!(base.addr().get() % (2 * MB), 0);
        let backing = region.grow(1).unwrap();
        if pages == Pages::Small {
            assert_eq!(backing, Backing::Small);
        }
        assert_eq!(region.committed(), 2 * MB);
        region.grow(4 * MB).unwrap();
        assert_eq!(region.committed(), 6 * MB);
        assert_eq!(region.base(), base);
        assert!(region.grow(1).is_err());
        assert!(region.grow(usize::MAX).is_err());
    }
}

#[test]
fn pieces_are_lines_and_the_first_is_at_zero() {
    let segment = SharedSegment::create("test", 16 << 30).unwrap();
    let header = segment.alloc_u64s(3).unwrap();
    let counters = segment.alloc_u64s(100).unwrap();
    assert_eq!((header.offset(), header.len()), (0, 3));
    assert_eq!((counters.offset(), counters.len()), (64, 100));
    assert_eq!(segment.size(), 16 << 30);
}

#[test]
fn another_process_would_see_the_counters() {
    let segment = SharedSegment::create("test", MB).unwrap();
    let piece = segment.alloc_u64s(4).unwrap();
    piece[2].store(77, Ordering::Relaxed);
    let file = std::fs::File::from(segment.read_only_fd().unwrap());
    assert!(file.write_at(&[1], 16).is_err());
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 16).unwrap();
    assert_eq!(u64::from_ne_bytes(bytes), 77);
}

/// A region that gets no reserved pages puts ordinary ones in their place; other threads map memory all the time.
#[test]
fn growing_with_huge_pages_never_touches_what_others_map() {
    let grow = || {
        for _ in 0..400 {
            let mut region = Region::reserve(6 * MB, Pages::Huge).unwrap();
            region.grow(MB).unwrap();
            region.grow(4 * MB).unwrap();
        }
    };
    let share = || {
        for round in 0..400 {
            let segment = SharedSegment::create("test", 2 * MB).unwrap();
            let piece = segment.alloc_u64s(4).unwrap();
            piece[2].store(round, Ordering::Relaxed);
            let mut bytes = [0; 8];
            let file = std::fs::File::from(segment.read_only_fd().unwrap());
            file.read_exact_at(&mut bytes, 16).unwrap();
            assert_eq!(u64::from_ne_bytes(bytes), round);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(grow);
            scope.spawn(share);
        }
    });
}

#[test]
fn a_freed_piece_comes_back_zeroed_and_only_once() {
    let segment = SharedSegment::create("test", MB).unwrap();
    let _first = segment.alloc_u64s(3).unwrap();
    let piece = segment.alloc_u64s(2_000).unwrap();
    let offset = piece.offset();
    for word in piece.iter() {
        word.store(9, Ordering::Relaxed);
    }
    let clone = piece.clone();
    assert!(segment.free(piece));
    assert!(!segment.free(clone), "freed twice");
    let again = segment.alloc_u64s(2_000).unwrap();
    assert_eq!(again.offset(), offset);
    assert!(again.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    let other = SharedSegment::create("other", MB).unwrap();
    assert!(!other.free(again));
}

#[test]
fn a_full_segment_is_an_error() {
    let segment = SharedSegment::create("test", 4096).unwrap();
    assert!(segment.alloc_u64s(504).is_ok());
    let full = segment.alloc_u64s(1).unwrap_err();
    assert_eq!((full.wanted, full.left), (8, 0));
    assert!(segment.alloc_u64s(usize::MAX).is_err());
    assert!(segment.write_bytes(4090, &[0; 7]).is_err());
    assert!(segment.write_bytes(usize::MAX, &[0; 7]).is_err());
}

proptest! {
    #[test]
    fn bytes_are_written_where_asked_and_nowhere_else(
        writes in prop::collection::vec((0_usize..200, prop::collection::vec(any::<u8>(), 0..40)), 0..20),
    ) {
        let segment = SharedSegment::create("test", 4096).unwrap();
        let mut model = [0_u8; 256];
        for (offset, bytes) in writes {
            segment.write_bytes(offset, &bytes).unwrap();
            model[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        let mut all = [0; 256];
        segment.read_bytes(0, &mut all).unwrap();
        prop_assert_eq!(all, model);
        let mut some = [0; 33];
        segment.read_bytes(13, &mut some).unwrap();
        prop_assert_eq!(&some[..], &model[13..46]);
    }
}

#[test]
fn a_view_sees_what_the_owner_writes_and_nothing_outside() {
    let segment = SharedSegment::create("view", 1 << 20).unwrap();
    let piece = segment.alloc_u64s(16).unwrap();
    let view = shoal_infra::SegmentView::new(segment.read_only_fd().unwrap()).unwrap();
    assert_eq!(view.len(), (1 << 20) / 8);
    piece[3].store(7, Ordering::Relaxed);
    let mut words = [0; 2];
    assert_eq!(view.read(3, &mut words), Some(()));
    assert_eq!(words, [7, 0]);
    assert_eq!(view.read(view.len() - 2, &mut words), Some(()));
    for start in [view.len() - 1, view.len(), usize::MAX] {
        assert_eq!(view.read(start, &mut words), None, "{start}");
    }
}

#[test]
fn a_file_that_could_shrink_is_not_viewed() {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let refused = shoal_infra::SegmentView::new(file.into()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
}

#[test]
fn no_piece_ends_where_the_segment_ends() {
    let segment = SharedSegment::create("full", 4096).unwrap();
    let mut last = 0;
    while let Ok(piece) = segment.alloc_u64s(8) {
        last = piece.offset() + 64;
    }
    assert_eq!(last, 4096 - 64);
}

#[test]
fn a_stable_vector_grows_in_place_up_to_its_capacity() {
    let mut numbers = StableVec::with_capacity(MB).unwrap();
    assert!(numbers.is_empty());
    numbers.push(0_u64).unwrap();
    let first = numbers.as_ptr();
    for n in 1..MB {
        assert_eq!(numbers.push(n as u64), Some(n));
    }
    assert_eq!((numbers.push(7), numbers.len(), numbers.capacity()), (None, MB, MB));
    assert_eq!(numbers.as_ptr(), first);
    assert_eq!(first.addr() % (2 * MB), 0, "large ones may be on huge pages");
    numbers.iter_mut().for_each(|n| *n *= 2);
    assert!(numbers.iter().zip(0..).all(|(&n, at)| n == 2 * at));
    numbers.prefetch(MB + 5);
}

#[test]
fn a_stable_vector_that_is_populated_has_what_it_had() {
    let mut numbers = StableVec::with_capacity(10_000).unwrap();
    numbers.push(5_u32).unwrap();
    numbers.populate(usize::MAX / 8).unwrap();
    numbers.push(6).unwrap();
    assert_eq!(numbers[..], [5, 6]);
    assert!(StableVec::<u64>::with_capacity(usize::MAX).is_err());
    let mut none = StableVec::with_capacity(0).unwrap();
    assert_eq!(none.push([0_u8; 100]), None);
    assert!(none.populate(1).is_ok() && none.is_empty());
}
