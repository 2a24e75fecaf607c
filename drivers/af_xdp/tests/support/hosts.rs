//! Two hosts and the namespace between them.

use std::time::Duration;

use super::*;

/// How long something may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2), each on a veth whose other end, `ra` and `rb`, is in `r`.
pub struct Hosts {
    pub a: Namespace,
    pub b: Namespace,
    pub r: Namespace,
}

impl Hosts {
    pub fn new(tag: &str) -> Self {
        let [a, b, r] = ["a", "b", "r"].map(|end| Namespace::new(&format!("x{tag}{end}")).unwrap());
        let hosts = Hosts { a, b, r };
        hosts.wire(&hosts.a, "ra", "1");
        hosts.wire(&hosts.b, "rb", "2");
        hosts
    }

    pub fn wire(&self, host: &Namespace, end: &str, last: &str) {
        let peer = format!("type veth peer name eth0 numtxqueues 2 numrxqueues 2 netns {}", host.name());
        self.r.ip(&format!("link add {end} numrxqueues 2 numtxqueues 2 {peer}"));
        sh(&format!("ip netns exec {} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1", self.r.name()));
        host.ip(&format!("link set eth0 address 02:00:00:00:00:0{last}"));
        host.ip(&format!("address add 10.9.0.{last}/24 dev eth0"));
        host.ip(&format!("address add 2001:db8:9::{last}/64 dev eth0 nodad"));
        host.ip("link set eth0 up");
    }

    pub fn ping(&self, count: u32) -> bool {
        pings(&self.a, count, "10.9.0.2")
    }

    pub fn ping6(&self, count: u32) -> bool {
        pings(&self.a, count, "2001:db8:9::2")
    }

    /// Both families, a while after everything is up.
    pub fn reach_each_other(&self) -> bool {
        wait_for(PATIENCE, || self.ping(1)) && wait_for(PATIENCE, || self.ping6(1))
    }
}
