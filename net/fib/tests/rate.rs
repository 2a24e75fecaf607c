//! How fast routes are added and withdrawn; prints, asserts nothing about time. `cargo test --release -- --ignored`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::net::Ipv4Addr;
use std::time::Instant;

use router::{prefix, router};
use shoal_fib::{Family, FibIndex, Path, Source, consecutive};
use shoal_interface::SwIfIndex;
use shoal_wire::IpPrefix;

#[test]
#[ignore = "prints a rate"]
fn routes_a_second() {
    let router = router(1);
    let (fib, main) = (&router.fib, FibIndex::DEFAULT);
    let say = |what: &str, count: usize, start: Instant| {
        println!("{what}: {:.0} a second", count as f64 / start.elapsed().as_secs_f64());
    };
    let path = |n: u32| [Path::next_hop(Ipv4Addr::from_bits(0xc000_0200 + n % 200), SwIfIndex(1))];
    let many: Vec<IpPrefix> = consecutive(prefix("16.0.0.0/24"), 1_000_000).unwrap().collect();
    let start = Instant::now();
    fib.add_many(main, many.iter().copied(), Source::Api, &path(1)).unwrap();
    say("added in bulk, in order", many.len(), start);
    let table = fib.table(Family::Ip4, main).unwrap();
    println!("{} bytes a route", (table.trie_bytes + table.entry_bytes) / many.len());
    let start = Instant::now();
    fib.remove_many(main, many.iter().copied(), Source::Api).unwrap();
    say("withdrawn in bulk, in order", many.len(), start);

    let mut random = many;
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..random.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.swap(i, (seed >> 33) as usize % (i + 1));
    }
    let start = Instant::now();
    for (n, to) in (0u32..).zip(&random) {
        fib.add(main, *to, Source::Api, &path(n)).unwrap();
    }
    say("added one by one, shuffled, 200 next hops", random.len(), start);
    let start = Instant::now();
    for to in &random {
        fib.remove(main, *to, Source::Api).unwrap();
    }
    say("withdrawn one by one", random.len(), start);
}
