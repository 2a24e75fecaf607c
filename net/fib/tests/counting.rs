//! Which routes count: the wish, the counter, and what packets find.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use router::{Router, prefix, router};
use shoal_adj::{AdjKind, Counting};
use shoal_fib::{Family, FibError, FibIndex, Source, Via};

const MAIN: FibIndex = FibIndex::DEFAULT;

fn counts(router: &Router, addr: &str) -> bool {
    router.look_up(MAIN, addr.parse().unwrap()).1.kind() == AdjKind::Count
}

fn add(router: &Router, to: &str, via: Via) {
    router.fib.add(MAIN, prefix(to), Source::Cli, &[via.into()]).unwrap();
}

const BOTH: [[&str; 5]; 2] = [
    ["10.0.0.0/8", "10.1.0.0/16", "10.1.1.1", "0.0.0.0/0", "8.8.8.8"],
    ["2001:db8::/32", "2001:db8:1::/48", "2001:db8:1::1", "::/0", "2400::1"],
];

#[test]
fn a_route_that_comes_again_counts_again_until_no_client_wants_it() {
    for [net, inner, addr, _, other] in BOTH {
        let router = router(1);
        let before = router.locks();
        for to in [net, inner] {
            add(&router, to, Via::Unreachable);
        }
        router.fib.count_route(MAIN, prefix(net), Counting::On).unwrap();
        assert!(!counts(&router, addr) && !counts(&router, other));
        // What an entry leaves is its cover's, counter included.
        router.fib.remove(MAIN, prefix(inner), Source::Cli).unwrap();
        assert!(counts(&router, addr));
        router.fib.remove(MAIN, prefix(net), Source::Cli).unwrap();
        assert!(!counts(&router, addr));
        add(&router, net, Via::Drop);
        assert!(counts(&router, addr));
        router.fib.remove(MAIN, prefix(net), Source::Cli).unwrap();
        router.fib.count_route(MAIN, prefix(net), Counting::Off).unwrap();
        add(&router, net, Via::Drop);
        assert!(!counts(&router, addr));
        router.fib.remove(MAIN, prefix(net), Source::Cli).unwrap();
        assert_eq!(router.fib.check(), Vec::<String>::new());
        assert_eq!((router.locks(), router.fib.capacity().counted), (before, 0));
    }
}

#[test]
fn a_default_route_counts_only_where_there_is_one() {
    for [_, _, _, all, other] in BOTH {
        let router = router(1);
        router.fib.count_route(MAIN, prefix(all), Counting::On).unwrap();
        assert!(!counts(&router, other));
        add(&router, all, Via::Unreachable);
        assert!(counts(&router, other));
        router.fib.remove(MAIN, prefix(all), Source::Cli).unwrap();
        assert_eq!(router.way(other), "None");
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}

#[test]
fn all_routes_of_a_table_count_those_to_come_included() {
    for (family, [net, inner, addr, ..]) in Family::ALL.into_iter().zip(BOTH) {
        let router = router(1);
        add(&router, net, Via::Unreachable);
        router.fib.count_routes(family, MAIN, Counting::On).unwrap();
        assert!(counts(&router, addr));
        add(&router, inner, Via::Drop);
        assert!(counts(&router, addr));
        let refused = router.fib.count_route(MAIN, prefix(inner), Counting::Off).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("all routes of table 0 are counted, so {inner} is: disable the counters of all first")
        );
        assert_eq!(router.fib.check(), Vec::<String>::new());
        router.fib.count_routes(family, MAIN, Counting::Off).unwrap();
        assert!(!counts(&router, addr));
        assert_eq!((router.fib.check(), router.fib.capacity().counted), (Vec::new(), 0));
    }
}

#[test]
fn what_is_not_there_cannot_count() {
    for [net, inner, ..] in BOTH {
        let router = router(1);
        add(&router, net, Via::Drop);
        let refused = router.fib.count_route(MAIN, prefix(inner), Counting::On).unwrap_err();
        assert!(
            matches!(refused, FibError::NoEntry { nearest: Some(nearest), .. } if nearest == prefix(net)),
            "{refused}"
        );
        assert!(router.fib.count_route(FibIndex(9), prefix(net), Counting::On).is_err());
        // Counting no more what never counted is no mistake.
        router.fib.count_route(MAIN, prefix(net), Counting::Off).unwrap();
    }
}

#[test]
fn a_table_takes_its_counters_and_wishes_along() {
    for (family, [net, _, addr, ..]) in Family::ALL.into_iter().zip(BOTH) {
        let router = router(1);
        let before = router.locks();
        for _ in 0..2 {
            let other = router.fib.add_table(family, 10, None).unwrap();
            router.fib.add(other, prefix(net), Source::Cli, &[Via::Unreachable.into()]).unwrap();
            let kind = || router.look_up(other, addr.parse().unwrap()).1.kind();
            assert_eq!(kind(), AdjKind::Unreachable);
            router.fib.count_routes(family, other, Counting::On).unwrap();
            router.fib.count_route(other, prefix(net), Counting::On).unwrap();
            assert_eq!(kind(), AdjKind::Count);
            router.fib.del_table(family, 10).unwrap();
            assert_eq!((router.locks(), router.fib.check()), (before.clone(), Vec::new()));
        }
    }
}
