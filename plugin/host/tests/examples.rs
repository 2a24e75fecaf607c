//! Both examples: built as their readers would, loaded, and compared with each other.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::time::Duration;

use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::LoadedPlugins;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::MacAddress;
use shoal_wire::checksum::Sum;

const NODES: [&str; 2] = ["example-mark-c", "example-mark-rust"];

fn router() -> (tempfile::TempDir, Router, Vec<Port>) {
    let folder = tempfile::tempdir().unwrap();
    common::examples(folder.path());
    let mut router = common::router(folder.path());
    let ports: Vec<Port> = (0..2).map(|n| router.pg(n)).collect();
    for (n, port) in ports.iter().enumerate() {
        let ip4 = router.get::<Ip4>();
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        let ip6 = router.get::<Ip6>();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let (mac, i) = (MacAddress([2, 0xaa, 0, 0, 0, n as u8]), port.index());
        let arp = router.get::<shoal_arp::Neighbours>();
        arp.set((i, format!("10.0.{n}.2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted).unwrap();
        let nd = router.get::<shoal_ip6_nd::Neighbours>();
        nd.set((i, format!("2001:db8:{n}::2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted)
            .unwrap();
    }
    router.advance(Duration::from_secs(3));
    for port in &ports {
        drop(port.received());
    }
    (folder, router, ports)
}

fn frame(port: &Port) -> PacketBuilder {
    PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 0], port.mac())
}

/// Packets of both families with every traffic class, of many lengths, those of one behind those of the other: only
/// packets of the same way stay in order.
fn packets(port: &Port) -> Vec<Vec<u8>> {
    let (mut all, mut sixes) = (Vec::new(), Vec::new());
    for class in 0..=255u8 {
        let payload = vec![class; usize::from(class) * 5];
        let mut four = frame(port).ip4([10, 0, 0, 2], [10, 0, 1, 2]).udp(1, 2).payload(&payload).build();
        four[15] = class;
        four[24..26].fill(0);
        let mut sum = Sum::default();
        sum.add(&four[14..34]);
        let sum = sum.finish();
        four[24..26].copy_from_slice(&sum.to_be_bytes());
        let six = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2];
        let mut six =
            frame(port).ip6(six, [0x2001, 0xdb8, 1, 0, 0, 0, 0, 2]).udp(1, 2).payload(&payload).build();
        six[14] = 0x60 | class >> 4;
        six[15] = class << 4 | 0x0b;
        all.push(four);
        sixes.push(six);
    }
    all.extend(sixes);
    all
}

fn set(router: &Router, port: &Port, node: &str, on: bool) {
    for arc in ["ip4-unicast", "ip6-unicast"] {
        router.interfaces().enable_feature(arc, node, port.index(), on).unwrap();
    }
}

#[test]
fn both_do_the_same_to_packets_of_both_families() {
    let (_folder, mut router, ports) = router();
    let loaded = router.get::<LoadedPlugins>();
    assert_eq!(loaded.refused, Vec::<String>::new());
    let names: Vec<_> = loaded.plugins.iter().map(|p| (p.name.as_str(), p.version.as_str())).collect();
    assert_eq!(names, [(common::C, "1.0.0"), (common::RUST, env!("CARGO_PKG_VERSION"))]);
    let all = packets(&ports[0]);
    let (fours, sixes) = all.split_at(256);
    let pass = |router: &mut Router| {
        router.send_all(&ports[0], fours);
        router.send_all(&ports[0], sixes);
        ports[1].received()
    };
    let plain = pass(&mut router);
    let [c, rust] = NODES.map(|node| {
        set(&router, &ports[0], node, true);
        let received = pass(&mut router);
        set(&router, &ports[0], node, false);
        assert_eq!(router.error(node, "marked"), 512);
        received
    });
    assert_eq!((plain.len(), c.len()), (512, 512));
    assert!(c == rust);
    // What came out differs from what would have without in nothing but the DSCP and the sum over it.
    for (plain, marked) in plain.iter().zip(&c) {
        let mut expected = plain.clone();
        if plain[14] >> 4 == 4 {
            expected[15] = plain[15] & 3 | 10 << 2;
            let mut sum = Sum::default();
            sum.add(&marked[14..34]);
            assert_eq!(sum.folded(), 0xffff);
            expected[24..26].copy_from_slice(&marked[24..26]);
        } else {
            let class = ((plain[14] << 4 | plain[15] >> 4) & 3) | 10 << 2;
            expected[14] = 0x60 | class >> 4;
            expected[15] = plain[15] & 0x0f | class << 4;
        }
        assert!(*marked == expected, "{:02x?}", &marked[14..34]);
    }
    let drops: Vec<_> = router.errors().into_iter().filter(|(n, _)| !n.ends_with(": marked")).collect();
    assert_eq!(drops, []);
}

#[test]
fn both_drop_what_is_too_short_and_say_what_they_did() {
    let (_folder, mut router, ports) = router();
    let marked = ["dscp 2 -> 10", "dscp 46 -> 10"];
    let packets = packets(&ports[0]);
    let (four, six) = (&packets[8][14..], &packets[256 + 0xb8][14..]);
    for node in NODES {
        for (bytes, said) in [four, six].into_iter().zip(marked) {
            let passed = shoal_testkit::node::run(&mut router, node, bytes, |_| ());
            assert_eq!(passed.said(node), Some(said));
            for n in [0, 1, 10, 19] {
                router.inject(node, ports[0].index(), &bytes[..n]);
            }
        }
        router.run();
        assert_eq!(router.error(node, "short"), 8);
    }
}

#[test]
fn workers_run_plugins_too() {
    let (_folder, mut router, ports) = router();
    router.graph().add_worker(None).unwrap();
    let all = packets(&ports[0]);
    for node in NODES {
        set(&router, &ports[0], node, true);
        router.send_all(&ports[0], &all);
        set(&router, &ports[0], node, false);
        assert_eq!(ports[1].received().len(), 512);
        assert_eq!(router.error(node, "marked"), 512);
    }
}
