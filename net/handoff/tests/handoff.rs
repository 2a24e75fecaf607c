//! Packets spread over real workers: which worker sees which flow, and that none is lost.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::rc::Rc;

use shoal_graph::{FrameCx, RxQueue};
use shoal_handoff::{DefaultPlacement, Depth, Handoff, HandoffError, Label, OnInterface, Rules, Workers};
use shoal_interface::{DEVICE_INPUT_ARC, Queue};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
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

const DIRECTED: Rules = Rules { symmetry: Symmetry::Directed, depth: Depth::Inner, label: Label::Ignored };
const SYMMETRIC: Rules = Rules { symmetry: Symmetry::Symmetric, ..DIRECTED };

fn these(workers: &[u32]) -> Workers {
    Workers::These(workers.to_vec())
}

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
    let command =
        shoal_handoff::cli::COMMANDS.iter().find(|c| c.syntax.starts_with("set interface")).unwrap();
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
    router.get::<Handoff>().enable(a.index(), these(&[0, 2]), DIRECTED).unwrap();
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
    router.get::<Handoff>().enable(a.index(), these(&[0, 1]), DIRECTED).unwrap();
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
        handoff.enable(port.index(), these(&[0, 1, 2]), SYMMETRIC).unwrap();
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
    handoff.enable(a.index(), these(&[0]), DIRECTED).unwrap();
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
    router.get::<Handoff>().enable(a.index(), these(&[0, 1]), DIRECTED).unwrap();
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
    router.get::<Handoff>().enable(a.index(), these(&[0, 1]), DIRECTED).unwrap();
    router.graph().remove_worker(2).unwrap();
    router.send_all(&a, (0..50).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 50);
}

#[test]
fn a_deleted_interface_leaves_nothing_behind() {
    let (mut router, a, _) = router(1);
    let handoff = router.get::<Handoff>();
    handoff.enable(a.index(), these(&[0]), DIRECTED).unwrap();
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
    assert_eq!(handoff.enable(a.index(), these(&[]), DIRECTED), Err(HandoffError::Empty));
    let missing = HandoffError::NoWorker { wanted: 7, there: "0, 1".into(), nearest: 1 };
    assert_eq!(handoff.enable(a.index(), these(&[0, 7]), DIRECTED), Err(missing));
    assert!(handoff.enable(shoal_interface::SwIfIndex(99), these(&[0]), DIRECTED).is_err());
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
        alone.get::<Handoff>().enable(port.index(), these(&[0]), DIRECTED),
        Err(HandoffError::NoWorkers)
    );
}

#[test]
fn commands_set_and_show_it() {
    let (mut router, a, b) = router(2);
    set(&router, &[("interface", "pg0"), ("workers", "0-1"), ("symmetrical", "")]).unwrap();
    let on = OnInterface {
        interface: a.index(),
        asked: Some(these(&[0, 1])),
        workers: vec![0, 1],
        rules: SYMMETRIC,
    };
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

/// A queue of a device that brings nothing.
struct Silent;

impl RxQueue for Silent {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        0
    }

    fn is_parked(&self) -> bool {
        true
    }
}

fn add_queue(router: &Router, port: &Port, number: u32) {
    let node = router.graph().node("pg-input").unwrap();
    let queue = Queue { number, node, queue: Box::new(Silent), thread: None };
    router.interfaces().add_queue(port.index(), queue).unwrap();
}

/// The workers that take a port's packets.
fn takers(router: &Router, port: &Port) -> Vec<u32> {
    let all = router.get::<Handoff>().interfaces();
    all.into_iter().find(|on| on.interface == port.index()).map_or(Vec::new(), |on| on.workers)
}

#[test]
fn auto_takes_all_workers_while_they_are_more_than_the_queues() {
    let (mut router, a, b) = router(1);
    let handoff = router.get::<Handoff>();
    add_queue(&router, &a, 0);
    handoff.enable(a.index(), Workers::Auto, DIRECTED).unwrap();
    assert!(takers(&router, &a).is_empty(), "a worker for the queue");
    let second = router.graph().add_worker(None).unwrap();
    assert_eq!(takers(&router, &a), [0, 1]);
    router.send_all(&a, (0..100).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 100);
    add_queue(&router, &a, 1);
    assert!(takers(&router, &a).is_empty(), "a worker for each queue");
    drop(router.interfaces().remove_queue(a.index(), 1).unwrap());
    assert_eq!(takers(&router, &a), [0, 1]);
    router.graph().remove_worker(second).unwrap();
    assert!(takers(&router, &a).is_empty());
    router.send_all(&a, (0..100).map(|flow| packet(&a, flow)));
    assert_eq!(b.received().len(), 100);
}

#[test]
fn interfaces_of_which_nothing_is_said_are_spread_while_a_worker_would_be_idle() {
    let (mut router, a, b) = router(2);
    let handoff = router.get::<Handoff>();
    add_queue(&router, &a, 0);
    assert_eq!(
        (handoff.unsaid(), handoff.interfaces()),
        (DefaultPlacement::Off, vec![]),
        "without a start-up file"
    );
    handoff.set_unsaid(DefaultPlacement::Auto);
    assert_eq!((takers(&router, &a), takers(&router, &b)), (vec![0, 1], vec![]), "b has no queue");
    add_queue(&router, &b, 0);
    assert_eq!((takers(&router, &a), takers(&router, &b)), (vec![], vec![]), "each has its worker");
    router.graph().add_worker(None).unwrap();
    assert_eq!((takers(&router, &a), takers(&router, &b)), (vec![0, 1, 2], vec![0, 1, 2]));
    handoff.disable(b.index()).unwrap();
    assert!(takers(&router, &b).is_empty(), "it has a setting");
    router.generator().delete_interface(b.index()).unwrap();
    handoff.set_unsaid(DefaultPlacement::Off);
    assert!(takers(&router, &a).is_empty());
    let far = router.pg(1);
    assert_eq!(far.index(), b.index());
    add_queue(&router, &far, 0);
    handoff.set_unsaid(DefaultPlacement::Auto);
    assert_eq!(takers(&router, &far), [0, 1, 2], "the previous interface's setting is forgotten");
}

#[test]
fn a_worker_that_is_ended_leaves_its_flows_to_the_others_and_gets_them_back() {
    let (mut router, a, b) = router(3);
    router.get::<Handoff>().enable(a.index(), these(&[0, 1, 2]), DIRECTED).unwrap();
    let share = |router: &mut Router| -> Vec<u64> {
        let before = shares(router);
        router.send_all(&a, (0..300).map(|flow| packet(&a, flow)));
        assert_eq!(b.received().len(), 300);
        // A thread that has gone leaves its counters.
        let threads: Vec<usize> = router.graph().threads().iter().map(|t| t.index).collect();
        threads.into_iter().zip(shares(router)).map(|(t, now)| now - before.get(t).unwrap_or(&0)).collect()
    };
    assert!(share(&mut router)[1..].iter().all(|n| *n > 50));
    router.graph().remove_worker(3).unwrap();
    let two = share(&mut router);
    assert!(two[0] == 0 && two[1] > 90 && two[2] > 90, "nothing stays on the main thread: {two:?}");
    assert_eq!(takers(&router, &a), [0, 1]);
    let text = show(&router).to_text();
    assert!(text.starts_with("pg0: workers 0,1 (asked for 0,1,2), asymmetrical\n"), "{text}");
    router.graph().add_worker(None).unwrap();
    assert_eq!(takers(&router, &a), [0, 1, 2]);
}

/// UDP from one station to another, in VXLAN over IPv6 between two fixed ends.
fn vxlan(a: &Port, flow: u16) -> Vec<u8> {
    let inner =
        Packet::ethernet([2, 1, 1, 1, 1, 1], [2, 1, 1, 1, 1, 2]).ip6([1; 8], [2; 8]).udp(flow, 53).build();
    let payload = [&[8, 0, 0, 0, 0, 0, 7, 0], inner.as_slice()].concat();
    Packet::ethernet([2, 0xaa, 0, 0, 0, 1], a.mac())
        .ip4([10, 0, 0, 2], [10, 0, 1, 2])
        .udp(50_000, 4789)
        .payload(&payload)
        .build()
}

#[test]
fn one_tunnels_flows_are_spread_and_with_outer_they_are_one() {
    let (mut router, a, b) = router(2);
    let handoff = router.get::<Handoff>();
    let mut moved = |rules: Rules, make: fn(&Port, u16) -> Vec<u8>| {
        handoff.enable(a.index(), these(&[0, 1]), rules).unwrap();
        let before = shares(&router);
        router.send_all(&a, (0..100).map(|flow| make(&a, flow)));
        assert_eq!(b.received().len(), 100);
        shares(&router).iter().zip(&before).filter(|(a, b)| a > b).count()
    };
    assert_eq!(moved(DIRECTED, vxlan), 2);
    assert_eq!(moved(SYMMETRIC, vxlan), 2);
    assert_eq!(moved(Rules { depth: Depth::Outer, ..DIRECTED }, vxlan), 1);
}

#[test]
fn ip6_is_spread_by_ports_or_by_label() {
    let (mut router, a, _) = router(2);
    let (handoff, ip6) = (router.get::<Handoff>(), router.get::<Ip6>());
    ip6.add_address(a.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    let mut moved = |rules: Rules, label: u32| {
        handoff.enable(a.index(), these(&[0, 1]), rules).unwrap();
        let nodes = ["ip6-lookup", "ip-superpath"].map(|n| router.graph().node(n).unwrap().number() as usize);
        let of = |router: &Router| -> Vec<u64> {
            let vectors = &router.graph().graph_counters().vectors;
            router
                .graph()
                .threads()
                .iter()
                .map(|t| nodes.iter().map(|n| vectors.get(t.index, *n)).sum())
                .collect()
        };
        let before = of(&router);
        router.send_all(
            &a,
            (0..100).map(|flow| {
                Packet::ethernet([2, 0xaa, 0, 0, 0, 1], a.mac())
                    .ip6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])
                    .udp(flow, 53)
                    .flow_label(label)
                    .payload_len(8)
                    .build()
            }),
        );
        of(&router).iter().zip(&before).filter(|(a, b)| a > b).count()
    };
    assert_eq!(moved(DIRECTED, 5), 2);
    assert_eq!(moved(Rules { label: Label::Counts, ..DIRECTED }, 5), 1);
    assert_eq!(moved(Rules { label: Label::Counts, ..DIRECTED }, 0), 2, "no label");
}

#[test]
fn rules_that_contradict_each_other_are_refused() {
    let (router, a, _) = router(2);
    let rules = Rules { label: Label::Counts, ..SYMMETRIC };
    let handoff = router.get::<Handoff>();
    assert_eq!(handoff.enable(a.index(), Workers::Auto, rules), Err(HandoffError::SymmetricLabel));
    assert_eq!(handoff.interfaces(), []);
    let words = [("interface", "pg0"), ("auto", ""), ("symmetrical", ""), ("flow-label", "")];
    assert!(set(&router, &words).unwrap_err().message().contains("exclude each other"));
    set(&router, &[("interface", "pg0"), ("auto", ""), ("outer", ""), ("flow-label", "")]).unwrap();
    assert_eq!(
        show(&router).to_text().lines().next(),
        Some("pg0: workers 0,1 (auto), asymmetrical, outer headers, flow label")
    );
}

#[test]
fn capacity_counts_the_places_of_all_rings() {
    let (router, _, _) = router(2);
    let rows = (shoal_handoff::MODULE.capacity)(router.control());
    assert_eq!((rows[0].resource.as_str(), rows[0].most), ("handoff frames", Some(6 * 64)));
}
