//! The driver in a router: two hosts in namespaces of their own, a TAP to each.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::process::Command;
use std::time::Duration;

use shoal_interface::IfFlags;
use shoal_tap::{
    Address, Coalesce, CreateTap, Error, HostConfig, Lifetime, Mode, NetnsRef, Offload, TapConfig, VhostNet,
};
use support::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2), and `r` where the router runs.
struct Hosts {
    a: Namespace,
    b: Namespace,
    r: Namespace,
}

impl Hosts {
    fn new(tag: &str) -> Self {
        let [a, b, r] = ["a", "b", "r"].map(|end| Namespace::new(&format!("{tag}{end}")).unwrap());
        Hosts { a, b, r }
    }

    fn taps(&self, mode: Mode, queues: u32) -> [CreateTap; 2] {
        [(&self.a, 1), (&self.b, 2)].map(|(ns, last)| {
            let addr = std::net::Ipv4Addr::new(10, 9, 0, last).into();
            let host = HostConfig {
                netns: Some(NetnsRef::Name(ns.name().to_owned())),
                addresses: vec![Address { addr, prefix_len: 24 }],
                ..HostConfig::default()
            };
            let tap = TapConfig { name: Some("eth0".into()), mode, host, ..TapConfig::default() };
            CreateTap { rx_queues: Some(queues), tap, ..CreateTap::default() }
        })
    }

    fn ping(&self, count: u32) -> bool {
        pings(&self.a, count, "10.9.0.2")
    }

    fn tcp(&self, bytes: usize) -> f64 {
        tcp(&self.a, &self.b, "10.9.0.2:7000", bytes)
    }
}

#[test]
fn hosts_talk_through_two_taps_with_ping_and_superframes() {
    if !can_run("hosts_talk_through_two_taps_with_ping_and_superframes") {
        return;
    }
    let hosts = Hosts::new("p");
    let router = start(&hosts.r);
    let taps = hosts.taps(Mode::Tap, 2);
    let [a, b] = router.on(|r| connect(r, taps));
    router.on(|r| r.graph.add_worker(None).unwrap());
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    assert!(hosts.ping(100));
    let rate = hosts.tcp(200 << 20);
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{rate:.0} Mb/s {ca:?} {cb:?} {errors:?}");
    assert!(ca.0 < (200 << 20) / 4000, "frames of {} bytes on average", (200 << 20) / ca.0);
    assert_eq!(unexpected(&errors), [], "{ca:?} {cb:?}");
    router.end();
}

#[test]
fn a_tun_hands_ip_packets_over_without_ethernet() {
    if !can_run("a_tun_hands_ip_packets_over_without_ethernet") {
        return;
    }
    let hosts = Hosts::new("u");
    let router = start(&hosts.r);
    let taps = hosts.taps(Mode::Tun, 1);
    let [a, _] = router.on(|r| connect(r, taps));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    println!("{:.0} Mb/s", hosts.tcp(50 << 20));
    assert!(!router.on(move |r| r.interfaces.data(a).unwrap().flags().has(IfFlags::ETHERNET)));
    router.end();
}

#[test]
fn the_host_deletes_its_side_and_the_router_says_so_and_rests() {
    if !can_run("the_host_deletes_its_side_and_the_router_says_so_and_rests") {
        return;
    }
    let hosts = Hosts::new("g");
    let router = start(&hosts.r);
    let taps = hosts.taps(Mode::Tap, 2);
    let [a, b] = router.on(|r| connect(r, taps));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    hosts.b.ip("link del eth0");
    assert!(wait_for(PATIENCE, || router.on(move |r| !r
        .interfaces
        .data(b)
        .unwrap()
        .flags()
        .has(IfFlags::LINK_UP))));
    // It rests: no more than a few hundred rounds in a while.
    let loops = |router: &Crossing| router.on(|r| r.graph.threads()[0].load().loops);
    let before = loops(&router);
    std::thread::sleep(Duration::from_millis(300));
    let spun = loops(&router) - before;
    assert!(spun < 2000, "{spun} rounds");
    assert!(!hosts.ping(1));
    router.on(move |r| all_taps(r).delete(b).unwrap());
    assert!(router.on(move |r| all_taps(r).delete(b).unwrap_err().to_string()).contains("there are: tap0"));
    assert_eq!(router.on(move |r| all_taps(r).list(None).unwrap().len()), 1);
    router.on(move |r| all_taps(r).delete(a).unwrap());
    assert!(
        Command::new("ip")
            .args(["-n", hosts.a.name(), "link", "show", "eth0"])
            .output()
            .unwrap()
            .stdout
            .is_empty()
    );
    router.end();
}

/// Errors but for merging, and for a ring that vhost-net's thread does not empty in time, which TCP makes up for.
fn unexpected<N: Clone, T: Clone>(errors: &[(N, &'static str, T)]) -> Vec<(N, &'static str, T)> {
    let by_rings = std::path::Path::new("/dev/vhost-net").exists();
    let expected =
        |what: &str| what == "packets merged into another" || by_rings && what == "host's queue full";
    errors.iter().filter(|(_, what, _)| !expected(what)).cloned().collect()
}

/// Frames that host `b` has received.
fn frames_at_b(hosts: &Hosts) -> u64 {
    let cat = ["netns", "exec", hosts.b.name(), "cat", "/sys/class/net/eth0/statistics/rx_packets"];
    let out = Command::new("ip").args(cat).output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}

#[test]
fn what_the_host_is_not_to_be_asked_for_the_router_does() {
    if !can_run("what_the_host_is_not_to_be_asked_for_the_router_does") {
        return;
    }
    let hosts = Hosts::new("o");
    let router = start(&hosts.r);
    let taps = hosts.taps(Mode::Tap, 1);
    let [a, b] = router.on(|r| connect(r, taps));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    // Host a goes on sending large packets; what b gets changes under way.
    for (offload, flags) in [
        (Offload::Checksum, IfFlags::TX_CHECKSUM),
        (Offload::Nothing, IfFlags::default()),
        (Offload::Gso, IfFlags::TX_CHECKSUM.set(IfFlags::TX_GSO, true)),
    ] {
        router.on(move |r| all_taps(r).set_offload(b, offload).unwrap());
        let both = IfFlags::TX_CHECKSUM.set(IfFlags::TX_GSO, true);
        let now = router.on(move |r| r.interfaces.data(b).unwrap().flags());
        assert_eq!((now.has(both), now.all(flags)), (flags.0 != 0, true), "{offload:?}");
        let before = frames_at_b(&hosts);
        hosts.tcp(20 << 20);
        let frames = frames_at_b(&hosts) - before;
        let cut = frames > (20 << 20) / 1460;
        assert_eq!(cut, offload != Offload::Gso, "{offload:?}: {frames} frames");
    }
    // The other way round: b hands over what it would send on a wire.
    router.on(move |r| all_taps(r).set_offload(a, Offload::Nothing).unwrap());
    let before = router.on(move |r| r.counts(a).0);
    hosts.tcp(20 << 20);
    let received = router.on(move |r| r.counts(a).0) - before;
    assert!(received > (20 << 20) / 1460, "{received} frames");
    // Merged again on the way out.
    router.on(move |r| all_taps(r).set_coalesce(b, Coalesce::On).unwrap());
    let before = frames_at_b(&hosts);
    hosts.tcp(20 << 20);
    let (frames, errors) = (frames_at_b(&hosts) - before, router.on(Inside::errors));
    println!("{frames} frames of {received} {errors:?}");
    assert_eq!(unexpected(&errors), []);
    assert!(
        router.on(move |r| all_taps(r).set_offload(shoal_interface::SwIfIndex(0), Offload::Gso)).is_err()
    );
    router.end();
}

#[test]
fn a_persistent_tap_stays_and_is_attached_to_again() {
    if !can_run("a_persistent_tap_stays_and_is_attached_to_again") {
        return;
    }
    let hosts = Hosts::new("k");
    let router = start(&hosts.r);
    let [mut a, b] = hosts.taps(Mode::Tap, 2);
    a.tap.lifetime = Lifetime::Persistent;
    let first = router.on({
        let wish = [a.clone(), b];
        move |r| connect(r, wish)
    });
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    router.on(move |r| all_taps(r).delete(first[0]).unwrap());
    let there = || Command::new("ip").args(["-n", hosts.a.name(), "link", "show", "eth0"]).output().unwrap();
    assert!(there().status.success(), "it is still there");
    a.tap.lifetime = Lifetime::Attached;
    let wish = a.clone();
    let again = router.on(move |r| {
        let index = all_taps(r).create(&wish).unwrap();
        r.join([index, first[1]]);
        r.interfaces.set_admin(index, true).unwrap();
        index
    });
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    router.on(move |r| all_taps(r).delete(again).unwrap());
    assert!(there().status.success(), "attaching leaves it, too");
    a.tap.name = Some("eth7".into());
    let missing = router.on(move |r| all_taps(r).create(&a).unwrap_err().to_string());
    assert!(missing.contains("eth7"), "{missing}");
    router.end();
}

#[test]
fn packets_of_9000_bytes_cross_in_chains() {
    if !can_run("packets_of_9000_bytes_cross_in_chains") {
        return;
    }
    let hosts = Hosts::new("j");
    let router = start(&hosts.r);
    let taps = hosts.taps(Mode::Tap, 1).map(|mut tap| {
        (tap.tap.host.mtu, tap.tap.offload) = (Some(9000), Offload::Nothing);
        tap
    });
    let [a, b] = router.on(|r| connect(r, taps));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    hosts.tcp(20 << 20);
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{ca:?} {cb:?} {errors:?}");
    assert!(ca.0 < (20 << 20) / 6000, "frames of {} bytes on average", (20 << 20) / ca.0);
    assert_eq!(unexpected(&errors), [], "{ca:?} {cb:?}");
    router.end();
}

#[test]
fn receive_queues_come_and_go_while_packets_flow() {
    if !can_run("receive_queues_come_and_go_while_packets_flow") {
        return;
    }
    let hosts = Hosts::new("q");
    let router = start(&hosts.r);
    let taps = hosts.taps(Mode::Tap, 1);
    let [a, b] = router.on(|r| connect(r, taps));
    router.on(|r| r.graph.add_worker(None).unwrap());
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    for queues in [4, 2, 3, 1] {
        router.on(move |r| [a, b].iter().for_each(|i| r.interfaces.set_rx_queues(*i, queues).unwrap()));
        let there = router.on(move |r| r.interfaces.queues(a).unwrap().len());
        assert_eq!(there, queues as usize);
        // Many flows: none of them ends in a queue that is not there any more.
        for _ in 0..8 {
            hosts.tcp(1 << 20);
        }
        // All of them are one flow: if its queue were gone, each time would fail.
        assert!(wait_for(PATIENCE, || hosts.ping(20)), "{queues} queues");
    }
    for wrong in [0, 65] {
        let error = router.on(move |r| r.interfaces.set_rx_queues(a, wrong).unwrap_err().to_string());
        assert!(error.contains("from 1 to 64"), "{error}");
    }
    let error =
        router.on(|r| r.interfaces.set_rx_queues(shoal_interface::SwIfIndex(0), 2).unwrap_err().to_string());
    assert!(error.contains("when it is created"), "{error}");
    router.end();
}

#[test]
fn a_tap_says_whether_frames_cross_by_vhost_net_and_why_not() {
    if !can_run("a_tap_says_whether_frames_cross_by_vhost_net_and_why_not") {
        return;
    }
    let hosts = Hosts::new("v");
    let router = start(&hosts.r);
    let [tap, _] = hosts.taps(Mode::Tap, 1);
    let [tun, _] = hosts.taps(Mode::Tun, 1);
    let why = |create: CreateTap| {
        router.on(move |r| {
            let taps = all_taps(r);
            let index = taps.create(&create)?;
            let vhost = taps.list(Some(index))?.remove(0).vhost;
            taps.delete(index)?;
            Ok::<_, Error>(vhost)
        })
    };
    let off = CreateTap { vhost: VhostNet::Off, ..tap.clone() };
    assert_eq!(why(off).unwrap(), Err("not asked for".into()));
    assert!(why(tun.clone()).unwrap().unwrap_err().contains("Ethernet frames"));
    let error = why(CreateTap { vhost: VhostNet::On, ..tun }).unwrap_err().to_string();
    assert!(error.starts_with("vhost-net: it takes Ethernet frames"), "{error}");
    // Whether it is there or not, it is reported.
    let sized = CreateTap { ring_sizes: [Some(1024), None], ..tap };
    match why(sized.clone()).unwrap() {
        Ok(info) => assert_eq!(info.ring_sizes, [1024, 256]),
        Err(why_not) => {
            assert!(why_not.contains("vhost-net"), "{why_not}");
            let error = why(CreateTap { vhost: VhostNet::On, ..sized }).unwrap_err().to_string();
            assert!(error.contains(&why_not) && error.contains("no-vhost-net"), "{error}");
        }
    }
    // Nothing of what was refused is there.
    assert!(router.on(|r| all_taps(r).list(None).unwrap().is_empty()));
    for ns in [&hosts.a, &hosts.b] {
        let out = Command::new("ip").args(["-n", ns.name(), "link", "show", "eth0"]).output().unwrap();
        assert!(out.stdout.is_empty());
    }
    router.end();
}
