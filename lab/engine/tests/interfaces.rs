//! Trials over the kernel's interfaces, in a namespace of their own. They need root and are skipped by name without.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support;

use std::path::Path;

use shoal_lab_engine::{
    Engine, MachineClock, PacketPort, SelfTest, TapPort, Transport, XdpPort, attach, self_test,
};
use shoal_lab_plan::*;
use shoal_testkit::netns::{Namespace, can_run};
use support::*;

fn engine<T: Transport>(left: T, right: T) -> Engine<T, MachineClock> {
    Engine::new(left, right, MachineClock::calibrated())
}

#[test]
fn all_frames_arrive_over_a_veth_pair_by_af_packet() {
    if !can_run("all_frames_arrive_over_a_veth_pair_by_af_packet", &[]) {
        return;
    }
    let (_namespace, path) = veth("sllengine-p");
    let open = |name| PacketPort::open(Some(&path), name).unwrap();
    all_arrive(engine(open("left"), open("right")));
}

#[test]
fn all_frames_arrive_over_a_veth_pair_by_af_xdp() {
    if !can_run("all_frames_arrive_over_a_veth_pair_by_af_xdp", &[]) {
        return;
    }
    let (_namespace, path) = veth("sllengine-x");
    let open = |name| XdpPort::open(Some(&path), name).unwrap();
    all_arrive(engine(open("left"), open("right")));
}

#[test]
fn all_frames_arrive_over_two_taps_that_a_bridge_joins() {
    if !can_run("all_frames_arrive_over_two_taps_that_a_bridge_joins", &["/dev/net/tun"]) {
        return;
    }
    let namespace = Namespace::new("sllengine-t").unwrap();
    let path = Path::new("/run/netns").join(namespace.name());
    if let Err(reason) = namespace.run(&["ip", "link", "add", "bridge", "type", "bridge"]) {
        shoal_testkit::netns::skipped(format_args!(
            "all_frames_arrive_over_two_taps_that_a_bridge_joins: no bridge: {reason}"
        ));
        return;
    }
    let ports = ["left", "right"].map(|name| TapPort::open(Some(&path), name).unwrap());
    for name in ["left", "right", "bridge"] {
        namespace.run(&["sysctl", "-qw", &format!("net.ipv6.conf.{name}.disable_ipv6=1")]).unwrap();
    }
    namespace.ip("link set bridge up type bridge mcast_snooping 0");
    namespace.ip("link set left master bridge");
    namespace.ip("link set right master bridge");
    let [left, right] = ports;
    all_arrive(engine(left, right));
}

#[test]
fn a_device_is_attached_to_by_its_ports_and_wrong_ports_say_why() {
    if !can_run("a_device_is_attached_to_by_its_ports_and_wrong_ports_say_why", &[]) {
        return;
    }
    let (namespace, path) = veth("sllengine-a");
    let clock = MachineClock::calibrated();
    let port = |name: &str, transport: &str| Port {
        attachment: Attachment::Interface {
            namespace: Some(path.clone()),
            name: name.into(),
            transport: transport.into(),
        },
        mac: None,
    };
    let attached = |left, right| attach(&Ports { left, right }, &clock, Link::default());
    let tester = attached(port("left", "af-packet"), port("right", "af-packet")).unwrap();
    assert_eq!((tester.facts().transport.as_str(), tester.facts().most_frame), ("af-packet", 1526));
    drop(tester);
    let error = |left, right| attached(left, right).map(drop).unwrap_err().to_string();
    assert!(error(port("left", "pcap"), port("right", "pcap")).contains("there are af-packet and af-xdp"));
    assert!(error(port("left", "af-xdp"), port("right", "af-packet")).contains("of one kind"));
    assert!(error(port("nowhere", "af-packet"), port("right", "af-packet")).contains("nowhere"));
    namespace.ip("link set left down");
    assert!(error(port("left", "af-packet"), port("right", "af-packet")).contains("is down"));
    let missing = Path::new("/run/netns/sllengine-missing");
    let error = PacketPort::open(Some(missing), "left").map(drop).unwrap_err().to_string();
    assert!(error.contains("sllengine-missing"), "{error}");
}

/// By hand: `cargo test --release -p shoal-lab-engine --test all interfaces -- --ignored --nocapture`.
#[test]
#[ignore = "takes seconds and prints figures that mean something on an idle machine only"]
fn the_ceiling_over_a_veth_pair_is_printed() {
    if !can_run("the_ceiling_over_a_veth_pair_is_printed", &[]) {
        return;
    }
    let (_namespace, path) = veth("sllengine-c");
    let print = |tester: &mut dyn Tester| {
        let mut test = SelfTest::quick(both(64, 1));
        (test.most, test.error) = (2_000_000, 0.03);
        let ceiling = self_test(tester, &test, &mut Unwatched).unwrap();
        let floor = ceiling.floor.iter().map(|d| (d.min, d.mean as u64, d.uncertainty)).collect::<Vec<_>>();
        assert!(ceiling.rate > 0);
        eprintln!("{}: {} fps a side, floor {floor:?} ns", tester.facts().transport, ceiling.rate);
    };
    let packet = |name| PacketPort::open(Some(&path), name).unwrap();
    print(&mut engine(packet("left"), packet("right")));
    let xdp = |name| XdpPort::open(Some(&path), name).unwrap();
    print(&mut engine(xdp("left"), xdp("right")));
}
