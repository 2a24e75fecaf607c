//! The driver in a router: two hosts in namespaces of their own, AF_XDP interfaces between them.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::time::Duration;

use shoal_af_xdp::{Copying, CreateXdp, Queues, XdpMode};
use support::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2), each on a veth whose other end, `ra` and `rb`, is in `r`.
struct Hosts {
    a: Namespace,
    b: Namespace,
    r: Namespace,
}

impl Hosts {
    fn new(tag: &str) -> Self {
        let [a, b, r] = ["a", "b", "r"].map(|end| Namespace::new(&format!("x{tag}{end}")).unwrap());
        let hosts = Hosts { a, b, r };
        hosts.wire(&hosts.a, "ra", "1");
        hosts.wire(&hosts.b, "rb", "2");
        hosts
    }

    fn wire(&self, host: &Namespace, end: &str, last: &str) {
        let peer = format!("type veth peer name eth0 netns {}", host.name());
        self.r.ip(&format!("link add {end} numrxqueues 4 numtxqueues 4 {peer}"));
        sh(&format!("ip netns exec {} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1", self.r.name()));
        host.ip(&format!("link set eth0 address 02:00:00:00:00:0{last}"));
        host.ip(&format!("address add 10.9.0.{last}/24 dev eth0"));
        host.ip(&format!("address add 2001:db8:9::{last}/64 dev eth0 nodad"));
        host.ip("link set eth0 up");
    }

    fn ping(&self, count: u32) -> bool {
        pings(&self.a, count, "10.9.0.2")
    }
}

#[test]
fn hosts_ping_each_other_through_two_interfaces() {
    if !can_run("hosts_ping_each_other_through_two_interfaces") {
        return;
    }
    let hosts = Hosts::new("p");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], &CreateXdp::default()));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    assert!(wait_for(PATIENCE, || pings(&hosts.a, 1, "2001:db8:9::2")));
    assert!(hosts.ping(100) && pings(&hosts.a, 100, "2001:db8:9::2"));
    let (ca, cb, errors, info) = router.on(move |r| {
        (r.counts(a), r.counts(b), r.errors(), xdps(r).list(Some(a)).unwrap().remove(0))
    });
    println!("{ca:?} {cb:?} {errors:?} {info:?}");
    assert!(ca.0 >= 201 && ca.1 >= 201 && ca.0 == cb.1, "{ca:?} {cb:?}");
    assert_eq!((info.mode, info.zero_copy, info.malformed), (Some(XdpMode::Native), false, 0));
    assert_eq!(info.counts.redirected, ca.0);
    router.end();
}

#[test]
fn local_tcp_and_udp_with_open_checksums_arrive() {
    if !can_run("local_tcp_and_udp_with_open_checksums_arrive") {
        return;
    }
    let hosts = Hosts::new("t");
    let router = start(&hosts.r);
    let like = CreateXdp { queues: Queues::Count(2), ..CreateXdp::default() };
    let [a, b] = router.on(move |r| connect(r, ["ra", "rb"], &like));
    assert!(wait_for(PATIENCE, || hosts.ping(1)));
    let rate = tcp(&hosts.a, &hosts.b, "10.9.0.2:7000", 50 << 20);
    let rate6 = tcp(&hosts.a, &hosts.b, "[2001:db8:9::2]:7000", 50 << 20);
    let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
    println!("{rate:.0} and {rate6:.0} Mb/s {ca:?} {cb:?} {errors:?}");
    assert!(errors.iter().all(|(_, what, _)| *what == "transmit ring full"), "{errors:?}");
    router.end();
}
