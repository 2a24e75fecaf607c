//! A stream and everything behind it run without allocating.

mod common;

use std::rc::Rc;

use common::BACK;
use shoal_testkit::Router;
use shoal_testkit::alloc::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn streams_of_every_kind_allocate_nothing_per_packet() {
    let mut router = Router::new(&[&BACK]);
    // No sink: a sink is a copy of each packet.
    let pg = Rc::clone(router.generator());
    pg.create_interface(&shoal_pg::CreateInterface::default()).unwrap();
    for (name, size) in [("template", "64-64"), ("sizes", "64+1500"), ("long", "3000-3000")] {
        let text = format!(
            "name {name} interface pg0 size {size} data {{ IP4: 1.2.3 -> 4.5.6 \
             UDP: 1.1.1.1 -> 10.0.0.0 + 10.0.255.255 UDP: 1 -> 2 }}"
        );
        pg.add_stream(pg.parse_stream(&text).unwrap()).unwrap();
        pg.enable(name).unwrap();
        for _ in 0..50 {
            router.graph().round();
        }
        let count = allocations(|| {
            for _ in 0..100 {
                assert_eq!(router.graph().round().packets, 256);
            }
        });
        assert_eq!(count, 0, "stream {name}: allocations in 25,600 packets");
        pg.disable(name).unwrap();
        pg.delete_stream(name).unwrap();
    }
    router.run();
}
