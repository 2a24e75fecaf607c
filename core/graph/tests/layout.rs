//! What threads write lies on cache lines of their own: see "What threads share" in README.md.
#![allow(clippy::unwrap_used)] // helpers of tests

use shoal_graph::counter::Counters;
use shoal_graph::handoff::Handed;
use shoal_graph::{MAX_THREADS, QueueCount};
use shoal_infra::PADDING;

#[test]
fn counts_of_queues_and_slots_of_rings_begin_on_lines_of_their_own() {
    assert_eq!((align_of::<QueueCount>(), size_of::<QueueCount>()), (PADDING, PADDING));
    assert!(align_of::<Handed>() >= 64 && size_of::<Handed>().is_multiple_of(64));
}

#[test]
fn numbers_of_two_threads_lie_on_different_pairs_of_cache_lines() {
    for capacity in [1, 7, 8, 9, 16, 1000] {
        let counters = Counters::new(1 << 24).unwrap();
        counters.ensure_threads(MAX_THREADS).unwrap();
        let (simple, combined) =
            (counters.simple("/a", capacity).unwrap(), counters.combined("/b", capacity).unwrap());
        let rows = (0..MAX_THREADS).flat_map(|thread| {
            let of = |row: &shoal_graph::counter::Row, words: usize| {
                (thread, row.offset(), row.offset() + words * 8)
            };
            [of(simple.row(thread).unwrap(), capacity), of(combined.row(thread).unwrap(), 2 * capacity)]
        });
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (thread, first, end) in rows {
            pairs.extend((first / PADDING..=(end - 1) / PADDING).map(|pair| (pair, thread)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let shared = pairs.windows(2).find(|two| two[0].0 == two[1].0);
        assert_eq!(shared, None, "capacity {capacity}: a pair of lines and two threads");
    }
}
