//! Bad input at every node, vanishing interfaces, and routes that change under a running worker.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use common::{
    HOST_2, PacketInjector, address, interfaces, neighbour, route, router, station, towards, two_hosts, via,
};
use shoal_fib::{Fib, FibIndex, Source, Via};
use shoal_interface::MtuLayer;
use shoal_testkit::{Rng, Router, fuzz_all_nodes};

/// A router with a bit of everything.
fn full() -> Router {
    let (mut router, ports) = router(4);
    for (n, port) in ports.iter().enumerate().take(3) {
        address(&router, port, &format!("2001:db8:{n}::1/64"));
        neighbour(&router, port, &format!("2001:db8:{n}::2"), station(n as u8));
        neighbour(&router, port, "fe80::2", station(n as u8));
    }
    interfaces(&router).set_mtu(ports[1].index(), MtuLayer::Ip6, 100).unwrap();
    interfaces(&router).set_admin(ports[2].index(), false).unwrap();
    let t7 = common::table(&router, 7);
    route(&router, "::/1", via("2001:db8:1::2", &ports[1]));
    route(&router, "8000::/2", common::look_up_in(t7));
    common::route_in(&router, t7, "8000::/2", common::look_up_in(t7));
    route(&router, "c000::/4", Via::Prohibit);
    router.run();
    router
}

#[test]
fn every_node_survives_rubbish() {
    let seed = Rng::seed(46);
    for n in 0..3 {
        let mut router = full();
        // IPv4 packets to unknown neighbours wait for them.
        router.may_hold(4096);
        let fuzzed = fuzz_all_nodes(&mut router, seed + n, 1500);
        assert!(fuzzed.nodes > 40, "{fuzzed:?}");
        router.may_hold(0);
        router.advance(Duration::from_secs(30));
        assert_eq!(router.buffers_in_use(), 0, "seed {}", seed + n);
    }
}

#[test]
fn an_interface_deleted_under_traffic_takes_no_other_with_it() {
    let (mut router, a, b) = two_hosts();
    let c = router.pg(2);
    address(&router, &c, "2001:db8:2::1/64");
    neighbour(&router, &c, "2001:db8:2::2", station(3));
    route(&router, "2001:100::/32", via(HOST_2, &b));
    let giver = PacketInjector::new(&router, &a, 0);
    let mut through = 0;
    for burst in 0..20 {
        for _ in 0..100 {
            giver.give(towards(&a, "2001:100::1").udp(1, 2).build());
            giver.give(towards(&a, "2001:db8:2::2").udp(1, 2).build());
        }
        if burst == 10 {
            router.generator().delete_interface(b.index()).unwrap();
        }
        router.run();
        through += c.received().len();
    }
    assert_eq!((through, b.received().len()), (2000, 1000));
    assert_eq!(router.error("ip6-drop", "no route to destination"), 1000);
}

#[test]
fn interfaces_come_and_go_for_ever() {
    let (mut router, a, _) = two_hosts();
    for round in 0..200 {
        let c = router.pg(9);
        address(&router, &c, "2001:db8:9::1/64");
        neighbour(&router, &c, "2001:db8:9::2", station(9));
        router.send(&a, towards(&a, "2001:db8:9::2").udp(1, 2).build());
        assert_eq!(c.received().len(), 1, "round {round}");
        router.generator().delete_interface(c.index()).unwrap();
    }
    let nodes = router.graph().nodes().len();
    assert!(nodes < 120, "{nodes} nodes");
}

/// As for IPv4: each time there is a way, and each packet goes one of the two.
#[test]
fn routes_change_under_a_running_worker_and_no_packet_is_lost() {
    let (mut router, ports) = router(3);
    for (n, port) in ports.iter().enumerate() {
        address(&router, port, &format!("2001:db8:{n}::1/64"));
        neighbour(&router, port, &format!("2001:db8:{n}::2"), station(n as u8 + 1));
    }
    let (a, b, c) = (&ports[0], &ports[1], &ports[2]);
    let worker = router.graph().add_worker(None).unwrap();
    let giver = PacketInjector::new(&router, a, worker);
    let fib = router.get::<Fib>();
    let ways = [via("2001:db8:1::2", b), via("2001:db8:2::2", c)];
    let many: Vec<_> = (0..64).map(|n| common::prefix(&format!("2001:100:{n}::/48"))).collect();
    fib.add(FibIndex::DEFAULT, common::prefix("2001:100::/32"), Source::Cli, &ways[..1]).unwrap();
    const BURSTS: usize = 200;
    const BURST: usize = 100;
    for burst in 0..BURSTS {
        for n in 0..BURST {
            giver.give(towards(a, &format!("2001:100:{}::1", n % 64)).udp(1, 2).build());
        }
        router.graph().wake(worker);
        fib.add_many(FibIndex::DEFAULT, many.clone(), Source::Cli, &ways[burst % 2..=burst % 2]).unwrap();
        if burst % 3 == 0 {
            fib.remove_many(FibIndex::DEFAULT, many.clone(), Source::Cli).unwrap();
        }
        shoal_infra::qsbr::reclaim();
    }
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while giver.waiting() > 0 {
        router.graph().wake(worker);
        assert!(std::time::Instant::now() < deadline, "the worker does not take its packets");
        std::thread::yield_now();
    }
    router.run();
    let (got_b, got_c) = (b.received().len(), c.received().len());
    assert_eq!((got_b + got_c, router.errors()), (BURSTS * BURST, vec![]));
    assert!(got_b > 0 && got_c > 0);
}
