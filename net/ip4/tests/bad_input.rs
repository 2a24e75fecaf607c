//! Bad input at every node, vanishing interfaces, no buffers, and tables that change under running workers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use common::{
    MODULES, PacketInjector, address, interfaces, neighbour, route, router, station, to, two_hosts, udp, via,
};
use shoal_fib::{Fib, FibIndex, Source, Via};
use shoal_interface::MtuLayer;
use shoal_testkit::{Config, PacketBuilder, Rng, Router, fuzz_all_nodes};

/// A router with a bit of everything.
fn full() -> Router {
    let (mut router, ports) = router(4);
    for (n, port) in ports.iter().enumerate().take(3) {
        address(&router, port, &format!("10.0.{n}.1/24"));
        neighbour(&router, port, &format!("10.0.{n}.2"), station(n as u8));
    }
    interfaces(&router).set_mtu(ports[1].index(), MtuLayer::Ip4, 100).unwrap();
    interfaces(&router).set_admin(ports[2].index(), false).unwrap();
    let t7 = common::table(&router, 7);
    route(&router, "0.0.0.0/1", via("10.0.1.2", &ports[1]));
    route(&router, "128.0.0.0/2", common::look_up_in(t7));
    common::route_in(&router, t7, "128.0.0.0/2", common::look_up_in(t7));
    route(&router, "192.0.0.0/4", Via::Prohibit);
    router.run();
    router
}

#[test]
fn every_node_survives_rubbish() {
    let seed = Rng::seed(42);
    for n in 0..3 {
        let mut router = full();
        // Packets to unknown neighbours wait for them.
        router.may_hold(4096);
        let fuzzed = fuzz_all_nodes(&mut router, seed + n, 1500);
        assert!(fuzzed.nodes > 30, "{fuzzed:?}");
        router.may_hold(0);
        router.advance(Duration::from_secs(30));
        assert_eq!(router.buffers_in_use(), 0, "seed {}", seed + n);
    }
}

#[test]
fn an_interface_deleted_under_traffic_takes_no_other_with_it() {
    let (mut router, a, b) = two_hosts();
    let c = router.pg(2);
    address(&router, &c, "10.0.2.1/24");
    neighbour(&router, &c, "10.0.2.2", station(3));
    route(&router, "20.0.0.0/8", via("10.0.1.2", &b));
    let giver = PacketInjector::new(&router, &a, 0);
    let frame = |dst: [u8; 4]| to(&a).ip4([10, 0, 0, 2], dst).udp(1, 2).build();
    let mut through = 0;
    for burst in 0..20 {
        for _ in 0..100 {
            giver.give(frame([20, 0, 0, 1]));
            giver.give(frame([10, 0, 2, 2]));
        }
        if burst == 10 {
            // Packets wait in the queue, which the deletion does not touch.
            router.generator().delete_interface(b.index()).unwrap();
        }
        router.run();
        through += c.received().len();
    }
    assert_eq!(through, 2000);
    assert_eq!(b.received().len(), 1000);
    assert_eq!(router.error("ip4-drop", "no route to destination"), 1000);
    let again = router.pg(1);
    address(&router, &again, "10.0.1.1/24");
    neighbour(&router, &again, "10.0.1.2", station(2));
    router.send(&a, udp(&a).build());
    assert_eq!(again.received().len(), 1);
}

#[test]
fn the_receiving_interface_may_go_with_packets_in_its_queue() {
    let (mut router, a, b) = two_hosts();
    router.generator().inject(a.index(), udp(&a).build()).unwrap();
    interfaces(&router).delete(a.index()).unwrap();
    router.run();
    assert!(b.received().is_empty());
    assert_eq!((router.buffers_in_use(), router.errors()), (0, vec![]));
    let again = router.pg(0);
    router.send(&again, udp(&again).build());
    assert_eq!(router.error("ip4-not-enabled", "ip4 is not enabled on the interface"), 1);
}

#[test]
fn interfaces_come_and_go_for_ever() {
    let (mut router, a, _) = two_hosts();
    for round in 0..300 {
        let c = router.pg(9);
        address(&router, &c, "10.0.9.1/24");
        neighbour(&router, &c, "10.0.9.2", station(9));
        router.send(&a, to(&a).ip4([10, 0, 0, 2], [10, 0, 9, 2]).udp(1, 2).build());
        assert_eq!(c.received().len(), 1, "round {round}");
        router.generator().delete_interface(c.index()).unwrap();
    }
    let nodes = router.graph().nodes().len();
    assert!(nodes < 100, "{nodes} nodes");
}

#[test]
fn without_buffers_packets_are_missed_and_counted_then_all_is_as_before() {
    let (mut router, ports) = common::with_buffers(2, 128);
    let (a, b) = (&ports[0], &ports[1]);
    for (n, port) in ports.iter().enumerate() {
        address(&router, port, &format!("10.0.{n}.1/24"));
        neighbour(&router, port, &format!("10.0.{n}.2"), station(n as u8 + 1));
    }
    let mut kept = Vec::new();
    while let Some(buffer) = router.graph().main().cache().alloc_one() {
        kept.push(buffer);
    }
    assert_eq!(kept.len(), 128);
    router.send_all(a, (0..10).map(|_| udp(a).build()));
    assert!(b.received().is_empty());
    assert_eq!(router.if_counter("/if/rx-no-buf", a.index()), 10);
    // Five buffers: five packets at a time.
    for buffer in kept.drain(..5) {
        router.graph().main().cache().free(buffer);
    }
    router.send_all(a, (0..10).map(|_| udp(a).build()));
    assert_eq!(b.received().len(), 5);
    assert_eq!(router.if_counter("/if/rx-no-buf", a.index()), 15);
    for buffer in kept {
        router.graph().main().cache().free(buffer);
    }
    router.send_all(a, (0..100).map(|_| udp(a).build()));
    assert_eq!(b.received().len(), 100);
}

#[test]
fn a_redirect_without_a_buffer_for_it_still_forwards_the_packet() {
    let (mut router, ports) = common::with_buffers(1, 64);
    let a = &ports[0];
    address(&router, a, "10.0.0.1/24");
    neighbour(&router, a, "10.0.0.3", station(3));
    neighbour(&router, a, "10.0.0.2", station(2));
    route(&router, "20.0.0.0/8", via("10.0.0.3", a));
    let mut kept = Vec::new();
    for _ in 0..63 {
        kept.push(router.graph().main().cache().alloc_one().unwrap());
    }
    router.send(a, to(a).ip4([10, 0, 0, 2], [20, 0, 0, 1]).udp(1, 2).build());
    assert_eq!(a.received_one()[..6], station(3).0);
    for buffer in kept {
        router.graph().main().cache().free(buffer);
    }
}

/// QSBR at work: a worker forwards while the control plane changes every route it uses. No packet is lost, because
/// each time there is a way, and each packet goes one of the two.
#[test]
fn routes_change_under_a_running_worker_and_no_packet_is_lost() {
    let (mut router, ports) = router(3);
    for (n, port) in ports.iter().enumerate() {
        address(&router, port, &format!("10.0.{n}.1/24"));
        neighbour(&router, port, &format!("10.0.{n}.2"), station(n as u8 + 1));
    }
    let (a, b, c) = (&ports[0], &ports[1], &ports[2]);
    let worker = router.graph().add_worker(None).unwrap();
    let giver = PacketInjector::new(&router, a, worker);
    let fib = router.get::<Fib>();
    let ways = [via("10.0.1.2", b), via("10.0.2.2", c)];
    let many: Vec<_> = (0..64).map(|n| common::prefix(&format!("20.0.{n}.0/24"))).collect();
    fib.add(FibIndex::DEFAULT, common::prefix("20.0.0.0/8"), Source::Cli, &ways[..1]).unwrap();
    const BURSTS: usize = 200;
    const BURST: usize = 100;
    for burst in 0..BURSTS {
        for n in 0..BURST {
            giver.give(to(a).ip4([10, 0, 0, 2], [20, 0, (n % 64) as u8, 1]).udp(1, 2).build());
        }
        router.graph().wake(worker);
        // Routes come, change and go while the worker looks them up.
        fib.add_many(FibIndex::DEFAULT, many.clone(), Source::Cli, &ways[burst % 2..=burst % 2]).unwrap();
        if burst % 3 == 0 {
            fib.remove_many(FibIndex::DEFAULT, many.clone(), Source::Cli).unwrap();
        }
        if burst % 10 == 0 {
            neighbour(&router, b, "10.0.1.2", station(100 + (burst / 10) as u8));
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

#[test]
fn queues_move_between_workers_under_traffic_and_no_packet_is_lost() {
    let (mut router, a, b) = two_hosts();
    let workers = [router.graph().add_worker(None).unwrap(), router.graph().add_worker(None).unwrap()];
    let giver = PacketInjector::new(&router, &a, workers[0]);
    let mut given = 0;
    for round in 0..100 {
        for _ in 0..50 {
            giver.give(udp(&a).build());
            given += 1;
        }
        let to = [workers[1], 0, workers[0]][round % 3];
        router.graph().move_queue(giver.queue, to).unwrap();
        router.graph().wake(to);
        router.graph().round();
    }
    while giver.waiting() > 0 {
        router.run();
    }
    router.run();
    assert_eq!((b.received().len(), router.errors()), (given, vec![]));
}

#[test]
fn a_packet_of_zero_bytes_and_the_longest_one_are_survived() {
    let mut router = Router::with(Config { buffers: 512, ..Config::default() }, MODULES);
    let a = router.pg(0);
    address(&router, &a, "10.0.0.1/24");
    router.send(&a, []);
    assert_eq!(router.error("ethernet-input", "frame is shorter than an Ethernet header"), 1);
    let big = PacketBuilder::ethernet(station(1), a.mac()).ip4([10, 0, 0, 2], [10, 0, 0, 1]);
    router.send(&a, big.icmp_echo_request(1, 1).payload_len(65_507).build());
    router.send(&a, vec![0xff; 200_000]);
    router.advance(Duration::from_secs(20));
}
