//! Tables that may not grow any more, in a process of their own: the budget is the process's.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod router;

use std::net::Ipv4Addr;

use router::{ip, prefix, router};
use shoal_fib::{Family, FibError, FibIndex, Path, Source, consecutive};
use shoal_infra::budget::{self, Limit};
use shoal_interface::SwIfIndex;
use shoal_wire::IpPrefix;

/// Adds single routes until one is refused; tells how many there are then, and the refusal.
fn fill(fib: &shoal_fib::Fib, prefixes: impl Iterator<Item = IpPrefix>) -> (Vec<IpPrefix>, FibError) {
    let path = [Path::next_hop(ip("192.0.2.1"), SwIfIndex(1))];
    let mut there = Vec::new();
    for prefix in prefixes {
        match fib.add(FibIndex::DEFAULT, prefix, Source::Cli, &path) {
            Ok(()) => there.push(prefix),
            Err(why) => return (there, why),
        }
    }
    panic!("{} routes fit", there.len());
}

#[test]
fn a_full_memory_refuses_routes_whole_and_takes_others_again() {
    let router = router(1);
    let (fib, main) = (&router.fib, FibIndex::DEFAULT);
    let empty = router.locks();
    for (family, first) in [(Family::Ip4, "16.0.0.0/24"), (Family::Ip6, "2a00::/44")] {
        let begun = budget::taken();
        budget::set_limit(Some(begun + (2 << 20)));
        let (there, why) = fill(fib, consecutive(prefix(first), 900_000).unwrap());
        let text = why.to_string();
        assert!(
            text.contains("does not fit into table 0: no memory") && text.contains("main-heap-size"),
            "{text}"
        );
        assert!(there.len() > 10_000, "{}", there.len());
        assert!(budget::taken() <= begun + (2 << 20));
        assert_eq!(fib.check(), Vec::<String>::new());
        let routes = || fib.table(family, main).unwrap().lengths.iter().sum::<usize>();
        let all = routes();
        assert_eq!(all, there.len() + 5);

        // A bulk that does not fit is undone wholly; also one that begins with routes that are there.
        let path = [Path::next_hop(ip("192.0.2.2"), SwIfIndex(1))];
        let mixed = there[..100].iter().copied().chain(
            consecutive(prefix(if family == Family::Ip4 { "80.0.0.0/24" } else { "2b00::/44" }), 900_000)
                .unwrap(),
        );
        fib.add_many(main, mixed, Source::Cli, &path).unwrap_err();
        assert_eq!((routes(), fib.check()), (all, Vec::new()));
        assert_eq!(router.way(&there[0].network().to_string()), "Incomplete 1 192.0.2.1");

        // What is withdrawn makes room: some of them, and all, again and again.
        for n in [1, 100, there.len()] {
            for _ in 0..2 {
                fib.remove_many(main, there[..n].iter().copied(), Source::Cli).unwrap();
                shoal_infra::qsbr::reclaim();
                for prefix in &there[..n] {
                    fib.add(main, *prefix, Source::Cli, &[Path::next_hop(ip("192.0.2.1"), SwIfIndex(1))])
                        .unwrap();
                }
                assert_eq!((routes(), fib.check()), (all, Vec::new()));
            }
        }
        let capacity = fib.capacity();
        assert_eq!(capacity.left.limit, Limit::Configured);
        assert!(capacity.left.bytes < 1 << 20, "{}", capacity.left.bytes);
        fib.remove_many(main, there.iter().copied(), Source::Cli).unwrap();
        assert_eq!(router.locks(), empty);
    }

    // Lists of paths are memory, too: each route with a next hop of its own.
    budget::set_limit(Some(budget::taken() + (1 << 20)));
    let before = router.locks();
    let own = |n: u32| {
        [
            Path::next_hop(Ipv4Addr::from_bits(0xc000_0200 + n), SwIfIndex(1)),
            Path::next_hop(ip("192.0.2.1"), SwIfIndex(1)),
        ]
    };
    let host = |n: u32| IpPrefix::new(Ipv4Addr::from_bits(0x1400_0000 + n).into(), 32).unwrap();
    let refused = (0..10_000).find(|n| fib.add(main, host(*n), Source::Cli, &own(*n)).is_err()).unwrap();
    assert!(refused > 300, "{refused}");
    assert!(
        fib.add(main, host(refused), Source::Cli, &own(1)).is_ok(),
        "a list that is there serves more routes"
    );
    assert_eq!(fib.check(), Vec::<String>::new());
    for n in 0..=refused {
        fib.remove(main, host(n), Source::Cli).unwrap();
    }
    assert_eq!(router.locks(), before);
    budget::set_limit(None);

    // A table that goes gives its memory back.
    let before = budget::taken();
    let customers = fib.add_table(Family::Ip4, 10, None).unwrap();
    let many = consecutive(prefix("10.0.0.0/24"), 60_000).unwrap();
    fib.add_many(customers, many, Source::Cli, &own(1)[1..]).unwrap();
    assert!(budget::taken() > before + (1 << 19));
    fib.del_table(Family::Ip4, 10).unwrap();
    for _ in 0..3 {
        shoal_infra::qsbr::reclaim();
    }
    assert_eq!(budget::taken(), before);
}
