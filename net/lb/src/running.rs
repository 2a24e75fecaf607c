//! The commands that rebuild it.

use std::fmt::Write;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::vip::{Encap, Policy, Service, Vip};
use crate::{LoadBalancer, Settings};

/// `lb vip`, as it was given.
fn of_vip(vip: &Vip) -> String {
    let Policy { encap, dscp, service, target_port, new_length, src_ip_sticky } = vip.policy;
    let mut line = format!("lb vip {} encap {encap}", vip.key);
    if encap == Encap::L3dsr {
        let _ = write!(line, " dscp {dscp}");
    }
    if encap.is_nat() {
        let _ = match service {
            Service::ClusterIp => write!(line, " type clusterip target_port {target_port}"),
            Service::NodePort(port) => {
                write!(line, " type nodeport target_port {target_port} node_port {port}")
            }
        };
    }
    if new_length != Policy::new(encap).new_length {
        let _ = write!(line, " new_len {new_length}");
    }
    line + if src_ip_sticky { " src_ip_sticky" } else { "" }
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(lb) = running.part::<LoadBalancer>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    let (now, usual) = (lb.settings(), Settings::default());
    if now.source4 != usual.source4 {
        line(format!("lb conf ip4-src-address {}", now.source4));
    }
    if now.source6 != usual.source6 {
        line(format!("lb conf ip6-src-address {}", now.source6));
    }
    if now.buckets != usual.buckets {
        line(format!("lb conf buckets {}", now.buckets));
    }
    if now.timeout != usual.timeout {
        line(format!("lb conf timeout {}", now.timeout));
    }
    for vip in lb.vips() {
        line(of_vip(&vip));
        for server in vip.servers().filter(|server| server.used) {
            line(format!("lb as {} {}", vip.key, server.address));
        }
    }
    for (interface, is_ip6) in lb.return_paths() {
        if let Ok(name) = interfaces.name(interface) {
            line(format!("lb set interface {} in {}", if is_ip6 { "nat6" } else { "nat4" }, word(&name)));
        }
    }
}
