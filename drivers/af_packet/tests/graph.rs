//! The driver in a router: two hosts in namespaces of their own, host interfaces between them.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shoal_interface::IfFlags;
use support::router::Router;
use support::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2), each on a veth whose other end, `ra` and `rb`, is in `r`.
struct Hosts {
    a: Netns,
    b: Netns,
    r: Netns,
}

fn quiet(ns: &Netns, end: &str) {
    sh(&format!("ip netns exec {} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1", ns.0));
}

impl Hosts {
    fn new(tag: &str) -> Self {
        let hosts = Hosts { a: Netns::new(&format!("{tag}a")), b: Netns::new(&format!("{tag}b")), r: Netns::new(&format!("{tag}r")) };
        hosts.wire(&hosts.a, "ra", "10.9.0.1/24");
        hosts.wire(&hosts.b, "rb", "10.9.0.2/24");
        hosts
    }

    fn wire(&self, host: &Netns, end: &str, address: &str) {
        self.r.ip(&format!("link add {end} numrxqueues 4 numtxqueues 4 type veth peer name eth0 netns {}", host.0));
        quiet(&self.r, end);
        quiet(host, "eth0");
        let last = if end == "ra" { "01" } else { "02" };
        host.ip(&format!("link set eth0 address 02:00:00:00:00:{last}"));
        host.ip(&format!("address add {address} dev eth0"));
        host.ip("link set eth0 up");
    }

    fn ping(&self, count: u32) -> bool {
        let out = Command::new("ip")
            .args(["netns", "exec", &self.a.0, "ping", "-q", "-i", "0.01", "-W", "1", "-c", &count.to_string(), "10.9.0.2"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        println!("{text}");
        text.contains(" 0% packet loss")
    }
}

#[test]
fn hosts_ping_each_other_through_two_host_interfaces() {
    if !can_run("hosts_ping_each_other_through_two_host_interfaces") {
        return;
    }
    let hosts = Hosts::new("p");
    let router = Router::start(&hosts.r);
    let [a, b] = router.on(|r| r.connect(["ra", "rb"], 1));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    assert!(hosts.ping(100));
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{ca:?} {cb:?} {errors:?}");
    assert!(ca.0 >= 101 && ca.1 >= 101 && ca.0 == cb.1, "{ca:?} {cb:?}");
    assert_eq!((ca.2, cb.2), (0, 0));
    assert!(router.on(move |r| r.interfaces.data(a).unwrap().flags().all(IfFlags::LINK_UP)));
    router.end();
}
