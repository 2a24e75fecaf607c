//! Packets spread over real workers: which worker sees which flow, and that none is lost.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::rc::Rc;

use shoal_handoff::{Handoff, HandoffError, OnInterface};
use shoal_interface::DEVICE_INPUT_ARC;
use shoal_ip4::Ip4;
use shoal_module::Module;
use shoal_module::cli::{Args, CliError, Run};
use shoal_testkit::{Port, Router};
use shoal_wire::hash::Symmetry;
use shoal_wire::{MacAddress, Packet};

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_handoff::MODULE,
];

const FAR: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 1]);

/// A router with `workers` workers that forwards from pg0 to a station behind pg1.
fn router(workers: usize) -> (Router, Port, Port) {
    let mut router = Router::new(MODULES);
    for _ in 0..workers {
        router.graph().add_worker(None).unwrap();
    }
    let (a, b) = (router.pg(0), router.pg(1));
    let ip4 = router.get::<Ip4>();
    ip4.add_address(a.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
    ip4.add_address(b.index(), "10.0.1.1/24".parse().unwrap()).unwrap();
    router.send(&b, Packet::arp_request(FAR, [10, 0, 1, 2], [10, 0, 1, 1]).build());
    assert_eq!(b.received().len(), 1);
    (router, a, b)
}

fn packet(a: &Port, flow: u16) -> Vec<u8> {
    Packet::ethernet([2, 0xaa, 0, 0, 0, 1], a.mac())
        .ip4([10, 0, 0, 2], [10, 0, 1, 2])
        .udp(flow, 53)
        .payload_len(20)
        .build()
}

/// Packets each thread has forwarded.
fn shares(router: &Router) -> Vec<u64> {
    let graph = router.graph();
    let names = ["ip4-lookup", "ip4-superpath"];
    let nodes: Vec<_> =
        names.iter().filter_map(|n| graph.node(n).ok()).map(|n| n.number() as usize).collect();
    let vectors = &graph.graph_counters().vectors;
    graph.threads().iter().map(|t| nodes.iter().map(|n| vectors.get(t.index, *n)).sum()).collect()
}

fn set(router: &Router, items: &[(&'static str, &str)]) -> Result<(), CliError> {
    let command = shoal_handoff::cli::COMMANDS.iter().find(|c| c.syntax.starts_with("set")).unwrap();
    let args = items.iter().fold(Args::new(Rc::clone(router.control()), ""), |args, (name, text)| {
        if text.is_empty() { args.with_word(name, 0..0) } else { args.with(name, *text, 0..0) }
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args).map(|_| ())
}

fn show(router: &Router) -> shoal_module::cli::Output {
    let command = shoal_handoff::cli::COMMANDS.iter().find(|c| c.syntax.starts_with("show")).unwrap();
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &Args::new(Rc::clone(router.control()), "")).unwrap()
}

#[test]
fn flows_are_spread_over_the_workers_named_and_none_is_lost() {
    let (mut router, a, b) = router(3);
    router.get::<Handoff>().enable(a.index(), &[0, 2], Symmetry::Directed).unwrap();
    let before = shares(&router);
    router.send_all(&a, (0..200).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 200);
    let after = shares(&router);
    let share: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
    assert_eq!((share[0], share[2]), (0, 0), "{share:?}");
    assert_eq!(share[1] + share[3], 200);
    assert!(share[1] > 50 && share[3] > 50, "{share:?}");
    assert_eq!(router.error("error-drop", "handoff ring full"), 0);
}

#[test]
fn packets_of_one_flow_stay_on_one_worker_and_in_order() {
    let (mut router, a, b) = router(2);
    router.get::<Handoff>().enable(a.index(), &[0, 1], Symmetry::Directed).unwrap();
    let before = shares(&router);
    let numbered = |n: u16| {
        Packet::ethernet([2, 0xaa, 0, 0, 0, 1], a.mac())
            .ip4([10, 0, 0, 2], [10, 0, 1, 2])
            .udp(7, 53)
            .id(n)
            .payload_len(20)
            .build()
    };
    router.send_all(&a, (0..100).map(numbered));
    let ids: Vec<u16> = b.received().iter().map(|f| u16::from_be_bytes([f[18], f[19]])).collect();
    assert_eq!(ids, (0..100).collect::<Vec<_>>());
    let moved = shares(&router).iter().zip(&before).filter(|(a, b)| a > b).count();
    assert_eq!(moved, 1);
}

#[test]
fn both_directions_meet_when_symmetrical() {
    let (mut router, a, b) = router(3);
    let handoff = router.get::<Handoff>();
    for port in [&a, &b] {
        handoff.enable(port.index(), &[0, 1, 2], Symmetry::Symmetric).unwrap();
    }
    router.send(&a, Packet::arp_request([2, 0xaa, 0, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 1]).build());
    for flow in 0..20 {
        let before = shares(&router);
        router.send(&a, packet(&a, flow));
        let back = Packet::ethernet(FAR.0, b.mac()).ip4([10, 0, 1, 2], [10, 0, 0, 2]).udp(53, flow).build();
        router.send(&b, back);
        let mut share: Vec<u64> = shares(&router).iter().zip(&before).map(|(a, b)| a - b).collect();
        share.sort_unstable();
        assert_eq!(share, [0, 0, 0, 2], "flow {flow}");
    }
}

#[test]
fn features_show_it_and_frames_go_straight_again_when_disabled() {
    let (mut router, a, b) = router(1);
    let handoff = router.get::<Handoff>();
    handoff.enable(a.index(), &[0], Symmetry::Directed).unwrap();
    let on = |router: &Router| {
        let arcs = router.graph().features(Some(a.index()));
        let features = arcs.into_iter().find(|(arc, _)| *arc == DEVICE_INPUT_ARC).unwrap().1;
        features.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(on(&router), ["worker-handoff"]);
    router.trace_add("pg-input", 1);
    router.send(&a, packet(&a, 1));
    assert_eq!(
        router.trace_paths().remove(0)[..5],
        ["pg-input", "device-input", "worker-handoff", "device-input-arc-end", "ethernet-input"]
    );
    handoff.disable(a.index()).unwrap();
    assert!(on(&router).is_empty());
    router.graph().trace_clear();
    router.trace_add("pg-input", 1);
    router.send(&a, packet(&a, 1));
    assert_eq!(router.trace_paths().remove(0)[..2], ["pg-input", "ethernet-input"]);
    assert_eq!(b.received().len(), 2);
}

#[test]
fn a_traced_packet_is_traced_on_the_other_thread_until_it_is_sent() {
    let (mut router, a, b) = router(2);
    router.get::<Handoff>().enable(a.index(), &[0, 1], Symmetry::Directed).unwrap();
    router.trace_add("pg-input", 20);
    router.send_all(&a, (0..20).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 20);
    let paths = router.trace_paths();
    assert_eq!(paths.len(), 20);
    assert!(paths.iter().all(|p| p.last().unwrap() == "pg1-tx"), "{paths:?}");
}

#[test]
fn a_worker_that_ends_loses_no_packet_of_those_meant_for_it() {
    let (mut router, a, b) = router(2);
    router.get::<Handoff>().enable(a.index(), &[0, 1], Symmetry::Directed).unwrap();
    router.graph().remove_worker(2).unwrap();
    router.send_all(&a, (0..50).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 50);
}

#[test]
fn a_deleted_interface_leaves_nothing_behind() {
    let (mut router, a, _) = router(1);
    let handoff = router.get::<Handoff>();
    handoff.enable(a.index(), &[0], Symmetry::Directed).unwrap();
    router.generator().delete_interface(a.index()).unwrap();
    assert_eq!(handoff.interfaces(), []);
    let again = router.pg(0);
    assert_eq!(again.index(), a.index());
    assert!(
        !router
            .graph()
            .features(Some(again.index()))
            .iter()
            .any(|(arc, list)| *arc == DEVICE_INPUT_ARC && list.iter().any(|(_, on)| *on))
    );
}

#[test]
fn what_is_not_there_is_refused_and_named_and_nothing_changes() {
    let (router, a, _) = router(2);
    let handoff = router.get::<Handoff>();
    assert_eq!(handoff.enable(a.index(), &[], Symmetry::Directed), Err(HandoffError::Empty));
    let missing = HandoffError::NoWorker { wanted: 7, there: "0, 1".into(), nearest: 1 };
    assert_eq!(handoff.enable(a.index(), &[0, 7], Symmetry::Directed), Err(missing));
    assert!(handoff.enable(shoal_interface::SwIfIndex(99), &[0], Symmetry::Directed).is_err());
    assert!(handoff.disable(shoal_interface::SwIfIndex(99)).is_err());
    assert_eq!(handoff.interfaces(), []);
    let wrong = set(&router, &[("interface", "pg0"), ("workers", "0-7")]).unwrap_err();
    let CliError::Argument { name, message, nearest } = wrong else { panic!("not about an argument") };
    assert_eq!((name.as_str(), message.as_str()), ("workers", "no worker 2, there are: 0, 1"));
    assert_eq!(nearest.as_deref(), Some("1"));
    let nothing = set(&router, &[("interface", "pg0")]).unwrap_err();
    assert!(nothing.message().contains("no worker was named"), "{}", nothing.message());
    let (alone, port, _) = self::router(0);
    assert_eq!(
        alone.get::<Handoff>().enable(port.index(), &[0], Symmetry::Directed),
        Err(HandoffError::NoWorkers)
    );
}

#[test]
fn commands_set_and_show_it() {
    let (mut router, a, b) = router(2);
    set(&router, &[("interface", "pg0"), ("workers", "0-1"), ("symmetrical", "")]).unwrap();
    let on = OnInterface { interface: a.index(), workers: vec![0, 1], symmetry: Symmetry::Symmetric };
    assert_eq!(router.get::<Handoff>().interfaces(), [on]);
    router.send_all(&a, (0..40).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 40);
    let text = show(&router).to_text();
    assert!(text.starts_with("pg0: workers 0,1, symmetrical\nFrom"), "{text}");
    let json = show(&router).to_json();
    let rings = json["rings"].as_array().unwrap();
    assert_eq!(rings.len(), 6, "two each way between three threads");
    assert!(rings.iter().map(|r| r["packets"].as_u64().unwrap()).sum::<u64>() > 0);
    assert_eq!(json["interfaces"][0]["symmetrical"], true);
    set(&router, &[("interface", "pg0"), ("disable", "")]).unwrap();
    assert_eq!(router.get::<Handoff>().interfaces(), []);
}
