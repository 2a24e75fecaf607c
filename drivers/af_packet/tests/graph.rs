//! The driver in a router: two hosts in namespaces of their own, host interfaces between them.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::num::NonZeroU16;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_af_packet::{CreateHostInterface, Qdisc, RxConfig, RxRing, TxConfig, TxOffload, TxQueue};
use shoal_interface::IfFlags;
use shoal_link::Link;
use shoal_vnet::{Csum, Gso, GsoKind, Offload, Segments, VnetHdr};
use shoal_wire::MacAddress;
use support::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2), each on a veth whose other end, `ra` and `rb`, is in `r`.
struct Hosts {
    a: Namespace,
    b: Namespace,
    r: Namespace,
}

fn quiet(ns: &Namespace, end: &str) {
    sh(&format!("ip netns exec {} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1", ns.name()));
}

impl Hosts {
    fn new(tag: &str) -> Self {
        let [a, b, r] = ["a", "b", "r"].map(|end| Namespace::new(&format!("{tag}{end}")).unwrap());
        let hosts = Hosts { a, b, r };
        hosts.wire(&hosts.a, "ra", "10.9.0.1/24");
        hosts.wire(&hosts.b, "rb", "10.9.0.2/24");
        hosts
    }

    fn wire(&self, host: &Namespace, end: &str, address: &str) {
        self.r.ip(&format!(
            "link add {end} numrxqueues 4 numtxqueues 4 type veth peer name eth0 netns {}",
            host.name()
        ));
        quiet(&self.r, end);
        quiet(host, "eth0");
        let last = if end == "ra" { "01" } else { "02" };
        host.ip(&format!("link set eth0 address 02:00:00:00:00:{last}"));
        host.ip(&format!("address add {address} dev eth0"));
        host.ip("link set eth0 up");
    }

    fn ping(&self, count: u32) -> bool {
        pings(&self.a, count, "10.9.0.2")
    }

    fn tcp(&self, bytes: usize) -> f64 {
        tcp(&self.a, &self.b, "10.9.0.2:7000", bytes)
    }
}

#[test]
fn hosts_ping_each_other_through_two_host_interfaces() {
    if !can_run("hosts_ping_each_other_through_two_host_interfaces") {
        return;
    }
    let hosts = Hosts::new("p");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], 1));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    assert!(hosts.ping(100));
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{ca:?} {cb:?} {errors:?}");
    assert!(ca.0 >= 101 && ca.1 >= 101 && ca.0 == cb.1, "{ca:?} {cb:?}");
    assert_eq!((ca.2, cb.2), (0, 0));
    assert!(router.on(move |r| r.interfaces.data(a).unwrap().flags().all(IfFlags::LINK_UP)));
    router.end();
}

#[test]
fn local_tcp_with_default_offloads_crosses_as_superframes() {
    if !can_run("local_tcp_with_default_offloads_crosses_as_superframes") {
        return;
    }
    let hosts = Hosts::new("t");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], 2));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    let rate = hosts.tcp(200 << 20);
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{rate:.0} Mb/s {ca:?} {cb:?} {errors:?}");
    assert!(ca.0 < (200 << 20) / 4000, "frames of {} bytes on average", (200 << 20) / ca.0);
    assert_eq!((ca.2, cb.2, errors.len()), (0, 0, 0), "{errors:?}");
    router.end();
}

#[test]
fn a_version_3_ring_takes_superframes_too() {
    use shoal_af_packet::RingVersion;
    if !can_run("a_version_3_ring_takes_superframes_too") {
        return;
    }
    let hosts = Hosts::new("v");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect_as(r, ["ra", "rb"], 2, RingVersion::V3));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    assert!(hosts.ping(100));
    let rate = hosts.tcp(100 << 20);
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{rate:.0} Mb/s {ca:?} {cb:?} {errors:?}");
    assert!(ca.0 < (100 << 20) / 4000, "frames of {} bytes on average", (100 << 20) / ca.0);
    assert!(errors.is_empty(), "{errors:?}");
    router.end();
}

/// Frames that host `b` has received.
fn frames_at_b(hosts: &Hosts) -> u64 {
    let cat = ["netns", "exec", hosts.b.name(), "cat", "/sys/class/net/eth0/statistics/rx_packets"];
    let out = Command::new("ip").args(cat).output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}

#[test]
fn tcp_is_cut_and_its_checksums_completed_where_the_interface_takes_no_offloads() {
    if !can_run("tcp_is_cut_and_its_checksums_completed_where_the_interface_takes_no_offloads") {
        return;
    }
    let asked = CreateHostInterface { offload: TxOffload::Router, ..Default::default() };
    let bypass = CreateHostInterface { qdisc: Qdisc::Bypass, ..Default::default() };
    for (tag, like) in [("c", asked), ("y", bypass)] {
        let hosts = Hosts::new(tag);
        let router = start(&hosts.r);
        let [a, b] = router.on(move |r| connect_like(r, ["ra", "rb"], &like));
        let offloads = IfFlags::TX_CHECKSUM.set(IfFlags::TX_GSO, true);
        assert!(router.on(move |r| !r.interfaces.data(a).unwrap().flags().has(offloads)));
        assert!(wait_for(PATIENCE, || hosts.ping(1)));
        let before = frames_at_b(&hosts);
        let rate = hosts.tcp(50 << 20);
        let frames = frames_at_b(&hosts) - before;
        let (cb, errors) = router.on(move |r| (r.counts(b), r.errors()));
        println!("{rate:.0} Mb/s, {frames} frames, {cb:?} {errors:?}");
        assert!(frames > (50 << 20) / 1460, "frames of {} bytes", (50 << 20) / frames);
        assert!(errors.is_empty(), "{errors:?}");
        router.end();
    }
}

/// A TCP superframe from 10.9.0.1 to 10.9.0.2 and its header.
fn superframe(payload: usize, piece: u16) -> (VnetHdr, Vec<u8>) {
    let mut frame = vec![0u8; 54 + payload];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    frame[46..48].copy_from_slice(&[0x50, 0x18]);
    frame[54..].iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 7) as u8);
    let gso = Gso { kind: GsoKind::Tcp4, size: NonZeroU16::new(piece).unwrap(), header_len: 54, ecn: false };
    let csum = Csum::Partial { start: 34, offset: 16 };
    (Offload { csum, gso: Some(gso) }.into(), frame)
}

fn cut(hdr: VnetHdr, frame: &[u8]) -> Vec<Vec<u8>> {
    let segs = [frame];
    let offload = hdr.validate(&segs).unwrap();
    let mut pieces = Segments::new(&segs, &offload, 14).unwrap().unwrap();
    let mut buffer = vec![0; pieces.max_len()];
    std::iter::from_fn(|| pieces.next_into(&mut buffer).map(|len| buffer[..len.unwrap()].to_vec())).collect()
}

#[test]
fn superframes_are_cut_in_order_and_absurd_ones_are_counted() {
    if !can_run("superframes_are_cut_in_order_and_absurd_ones_are_counted") {
        return;
    }
    let hosts = Hosts::new("u");
    let router = start(&hosts.r);
    let like = CreateHostInterface { offload: TxOffload::Router, ..Default::default() };
    let [_, b] = router.on(move |r| connect_like(r, ["ra", "rb"], &like));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    let (whole, many) = (superframe(60_000, 1448), superframe(60_000, 100));
    // 60,000 pieces of one byte: a host may ask for them, the router does not make them.
    let absurd = superframe(60_000, 1);
    let expected: Vec<Vec<u8>> =
        [&whole, &many, &whole].into_iter().flat_map(|(hdr, frame)| cut(*hdr, frame)).collect();
    let (ready, opened) = std::sync::mpsc::channel();
    let wanted = expected.len();
    let receiver = hosts.b.spawn(move || {
        let eth0 = Link::by_name("eth0").unwrap().index;
        let mut ring = RxRing::open(eth0, &RxConfig::default()).unwrap();
        ready.send(()).unwrap();
        let mut got = Vec::new();
        wait_for(PATIENCE, || {
            while let Some(frame) = ring.next() {
                if frame.bytes.get(23) == Some(&6) && frame.bytes[26..30] == [10, 9, 0, 1] {
                    got.push(frame.bytes.to_vec());
                }
            }
            got.len() >= wanted
        });
        got
    });
    opened.recv_timeout(PATIENCE).unwrap();
    hosts.a.inside(move || {
        let eth0 = Link::by_name("eth0").unwrap().index;
        let mut queue = TxQueue::open(eth0, &TxConfig::default()).unwrap();
        let mut batch = queue.batch();
        for (hdr, frame) in [&whole, &absurd, &many, &whole] {
            batch.push(*hdr, [&frame[..]]).unwrap();
        }
        assert_eq!(batch.send().sent, 4);
    });
    let got = receiver.join().unwrap();
    assert_eq!(got.len(), expected.len());
    assert!(got == expected, "other bytes");
    let (counts, errors) = router.on(move |r| (r.counts(b), r.errors()));
    assert_eq!(counts.2, 1, "{errors:?}");
    assert!(
        errors
            .iter()
            .any(|(node, what, n)| node == "host-rb-tx" && *what == "refused for what it is" && *n == 1)
    );
    router.end();
}

#[test]
fn the_kernels_interface_vanishes_under_traffic_and_comes_back() {
    if !can_run("the_kernels_interface_vanishes_under_traffic_and_comes_back") {
        return;
    }
    let hosts = Hosts::new("g");
    let router = start(&hosts.r);
    let [_, b] = router.on(|r| connect(r, ["ra", "rb"], 2));
    router.on(|r| r.graph.add_worker(None).unwrap());
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    let stop = Arc::new(AtomicBool::new(false));
    let (a, halt) = (hosts.a.name().to_owned(), Arc::clone(&stop));
    let flood = std::thread::spawn(move || {
        while !halt.load(Ordering::Relaxed) {
            let ping = ["netns", "exec", &a, "ping", "-q", "-f", "-c", "2000", "-w", "1", "10.9.0.2"];
            Command::new("ip").args(ping).output().unwrap();
        }
    });
    let is_up = move |router: &Crossing| {
        router.on(move |r| r.interfaces.data(b).unwrap().flags().has(IfFlags::LINK_UP))
    };
    for _ in 0..3 {
        assert!(wait_for(PATIENCE, || is_up(&router)));
        hosts.r.ip("link del rb");
        assert!(wait_for(PATIENCE, || !is_up(&router)));
        hosts.wire(&hosts.b, "rb", "10.9.0.2/24");
        assert!(wait_for(PATIENCE, || is_up(&router)));
        assert!(wait_for(PATIENCE, || hosts.ping(1)), "forwards again");
    }
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    let info = router.on(move |r| r.interfaces.info(b).unwrap());
    println!("{}", info.device);
    assert!(info.device.contains("vanished 3"), "{}", info.device);
    router.end();
}

#[test]
fn queues_move_between_threads_without_losing_a_frame() {
    if !can_run("queues_move_between_threads_without_losing_a_frame") {
        return;
    }
    let hosts = Hosts::new("m");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], 1));
    router.on(|r| {
        r.graph.add_worker(None).unwrap();
        r.graph.add_worker(None).unwrap();
    });
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    let before = router.on(move |r| (r.counts(a), r.counts(b)));
    let pings = pings_meanwhile(&hosts.a, 2000, "10.9.0.2");
    let mut moves = 0;
    while !pings.is_finished() {
        router.on(move |r| {
            r.interfaces.place_queue(a, 0, moves % 3).unwrap();
            r.interfaces.place_queue(b, 0, (moves + 1) % 3).unwrap();
        });
        moves += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = pings.join().unwrap();
    let after = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{moves} moves\n{text}\n{before:?} {after:?}");
    assert!(text.contains("2000 received"), "{text}");
    assert!(moves > 50 && after.2.is_empty(), "{:?}", after.2);
    router.end();
}

#[test]
fn receive_queues_come_and_go_while_packets_flow() {
    if !can_run("receive_queues_come_and_go_while_packets_flow") {
        return;
    }
    let hosts = Hosts::new("q");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], 1));
    router.on(|r| r.graph.add_worker(None).unwrap());
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    for queues in [4, 2, 3, 1, 2] {
        router.on(move |r| [a, b].iter().for_each(|i| r.interfaces.set_rx_queues(*i, queues).unwrap()));
        // Many flows: none of them ends in a queue that is not there any more.
        for _ in 0..16 {
            hosts.tcp(1 << 18);
        }
        assert!(hosts.ping(20), "{queues} queues");
        let counts = router
            .on(move |r| r.interfaces.queues(a).unwrap().iter().map(|q| q.count.get().1).collect::<Vec<_>>());
        assert_eq!(counts.len(), queues as usize);
        let used = counts.iter().filter(|n| **n > 0).count();
        assert!(used > 1 || queues == 1, "16 flows in one of {queues} queues: {counts:?}");
    }
    let ask = |queues| router.on(move |r| r.interfaces.set_rx_queues(a, queues).unwrap_err().to_string());
    for wrong in [0, 65] {
        assert!(ask(wrong).contains("from 1 to 64"), "{}", ask(wrong));
    }
    hosts.r.ip("link delete ra");
    assert!(wait_for(PATIENCE, || router.on(move |r| r.interfaces.set_rx_queues(a, 3).is_err())));
    assert!(ask(3).contains("'ra' is gone"), "{}", ask(3));
    router.end();
}

#[test]
fn state_and_mtu_follow_the_kernel_and_the_kernel_follows_the_operator() {
    if !can_run("state_and_mtu_follow_the_kernel_and_the_kernel_follows_the_operator") {
        return;
    }
    let hosts = Hosts::new("s");
    let router = start(&hosts.r);
    let [a, _] = router.on(|r| connect(r, ["ra", "rb"], 1));
    let data = move || router.on(move |r| *Box::new(r.interfaces.data(a).unwrap()));
    let up = || data().flags().has(IfFlags::LINK_UP);
    assert!(wait_for(PATIENCE, up));
    hosts.a.ip("link set eth0 down");
    assert!(wait_for(PATIENCE, || !up()), "no carrier");
    hosts.a.ip("link set eth0 up");
    assert!(wait_for(PATIENCE, up));
    hosts.r.ip("link set ra mtu 1400");
    assert!(wait_for(PATIENCE, || data().mtu == 1400));
    hosts.r.ip("link set ra name rx");
    hosts.a.ip("link set eth0 down");
    assert!(wait_for(PATIENCE, || !up()), "followed under its new name");
}

#[test]
fn wrong_requests_are_refused_and_leave_nothing() {
    use shoal_af_packet::Mode;
    if !can_run("wrong_requests_are_refused_and_leave_nothing") {
        return;
    }
    let hosts = Hosts::new("e");
    let router = start(&hosts.r);
    let ask = |create: CreateHostInterface| {
        router.on(move |r| host_interfaces(r).create(&create).map_err(|e| e.to_string()))
    };
    let named = |name: &str| CreateHostInterface { name: name.into(), ..Default::default() };
    assert_eq!(
        ask(named("rc")).unwrap_err(),
        "no interface 'rc' in this network namespace, did you mean 'ra'?"
    );
    let queues = CreateHostInterface { rx_queues: Some(0), ..named("ra") };
    assert_eq!(ask(queues).unwrap_err(), "number of receive queues is 0, must be from 1 to 64");
    let ip = CreateHostInterface { mode: Mode::Ip, ..named("ra") };
    assert_eq!(ask(ip).unwrap_err(), "frames of 'ra' have an Ethernet header: use mode ethernet");
    ask(named("ra")).unwrap();
    assert_eq!(ask(named("ra")).unwrap_err(), "interface `host-ra' exists already");
    let delete =
        |name: &'static str| router.on(move |r| host_interfaces(r).delete(name).map_err(|e| e.to_string()));
    assert_eq!(delete("rb").unwrap_err(), "'rb' is no host interface, did you mean 'ra'?");
    delete("ra").unwrap();
    assert_eq!(router.on(|r| r.interfaces.indices().len()), 1, "only local0");
    ask(named("ra")).unwrap();
    router.end();
}

/// What a command in the router's namespace prints.
fn printed(ns: &Namespace, command: &[&str]) -> String {
    let out = Command::new("ip").args(["netns", "exec", ns.name()]).args(command).output().unwrap();
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_kernels_interface_takes_in_only_what_somebody_needs() {
    if !can_run("the_kernels_interface_takes_in_only_what_somebody_needs") {
        return;
    }
    let hosts = Hosts::new("n");
    let router = start(&hosts.r);
    let has = |end: &str, words: &str| printed(&hosts.r, &["ip", "-d", "link", "show", end]).contains(words);
    let stations = |end: &str| printed(&hosts.r, &["bridge", "fdb", "show", "dev", end]);

    // An address of its own is one more that the interface passes on.
    let mac = MacAddress([2, 0xfe, 0, 0, 0, 7]);
    let own = CreateHostInterface { name: "ra".into(), mac: Some(mac), ..Default::default() };
    let a = router.on(move |r| host_interfaces(r).create(&own).unwrap());
    assert!(stations("ra").contains("02:fe:00:00:00:07"), "{}", stations("ra"));
    assert!(has("ra", "allmulti 1"));
    let other = MacAddress([2, 0xfe, 0, 0, 0, 8]);
    router.on(move |r| r.interfaces.set_mac(a, other).unwrap());
    let after = stations("ra");
    assert!(after.contains("02:fe:00:00:00:08") && !after.contains("02:fe:00:00:00:07"), "{after}");

    // With the kernel's address nothing else is passed on, unless the operator says so.
    let create = |name: &str| {
        let end = name.to_owned();
        let kernels = hosts.r.inside(move || Link::by_name(&end).unwrap().mac.unwrap());
        CreateHostInterface { name: name.into(), mac: Some(MacAddress(kernels)), ..Default::default() }
    };
    let same = create("rb");
    let b = router.on(move |r| host_interfaces(r).create(&same).unwrap());
    assert!(has("rb", "promiscuity 0") && has("rb", "allmulti 1"));
    router.on(move |r| r.interfaces.set_promiscuous(b, true).unwrap());
    assert!(has("rb", "promiscuity 1"));
    // Also of one that has come back.
    let is_up = || router.on(move |r| r.interfaces.data(b).unwrap().flags().has(IfFlags::LINK_UP));
    router.on(move |r| r.interfaces.set_admin(b, true).unwrap());
    assert!(wait_for(PATIENCE, is_up));
    hosts.r.ip("link del rb");
    assert!(wait_for(PATIENCE, || !is_up()));
    hosts.wire(&hosts.b, "rb", "10.9.0.2/24");
    assert!(wait_for(PATIENCE, is_up));
    assert!(!has("rb", "promiscuity 0"));
    // What is no longer wanted ends, and all of it with the interface.
    router.on(move |r| r.interfaces.set_promiscuous(b, false).unwrap());
    router.on(move |r| r.interfaces.delete(a).unwrap());
    assert!(wait_for(PATIENCE, || has("ra", "promiscuity 0") && has("ra", "allmulti 0")));
    assert!(wait_for(PATIENCE, || !stations("ra").contains("02:fe")), "{}", stations("ra"));
    router.end();
}
