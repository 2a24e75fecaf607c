//! Packets go in and come out without allocating, short ones and chains.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::rc::Rc;

use shoal_memif::CreateMemif;
use shoal_testkit::alloc::{CountingAllocator, allocations};
use support::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn neither_end_allocates_per_packet() {
    let mut pair = Pair::new("allocations", &CreateMemif::default());
    pair.connect();
    let pg = Rc::clone(pair.left.generator());
    let before = pair.right.if_counter("/if/rx", pair.ends[1]);
    for (name, size) in [("short", "64-64"), ("sizes", "64+1500"), ("long", "6000-6000")] {
        let text = format!(
            "name {name} interface pg0 node memif1/0-tx size {size} data {{ IP4: 1.2.3 -> 4.5.6 \
             UDP: 1.1.1.1 -> 10.0.0.0 + 10.0.255.255 UDP: 1 -> 2 }}"
        );
        pg.add_stream(pg.parse_stream(&text).unwrap()).unwrap();
        pg.enable(name).unwrap();
        let run = |rounds| {
            for _ in 0..rounds {
                pair.left.graph().round();
                pair.right.graph().round();
            }
        };
        run(50);
        assert_eq!(allocations(|| run(100)), 0, "stream {name}");
        pg.disable(name).unwrap();
        pg.delete_stream(name).unwrap();
    }
    let received = pair.right.if_counter("/if/rx", pair.ends[1]) - before;
    assert!(received > 50_000, "{received} packets received");
    pair.left.run();
    pair.right.run();
}
