//! What rebuilds which groups are listened to.

use std::net::Ipv4Addr;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};
use shoal_wire::Ip4Prefix;

use crate::{Igmp, ProxyInfo};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(igmp), Some(interfaces)) = (running.part::<Igmp>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for info in igmp.list() {
        let Ok(name) = interfaces.name(info.interface) else { continue };
        let name = word(&name);
        running.line(Phase::Policies, format!("igmp enable host {name}"));
        for group in info.groups {
            let any = group.any.then_some(Ipv4Addr::UNSPECIFIED);
            // Groups that are listened to for others only are saved by those.
            let own = |source: &Ipv4Addr| !igmp.is_proxied(info.interface, group.group, *source);
            for source in any.into_iter().chain(group.sources).filter(own) {
                let line = format!("igmp listen enable int {name} saddr {source} gaddr {}", group.group);
                running.line(Phase::Policies, line);
            }
        }
    }
    let usual = Ip4Prefix::new(Ipv4Addr::new(232, 0, 0, 0), 8).ok();
    let ranges = igmp.ranges();
    if let Some(usual) = usual.filter(|usual| !ranges.contains(usual)) {
        running.line(Phase::Policies, format!("igmp ssm-range del {usual}"));
    }
    for range in ranges.into_iter().filter(|range| Some(*range) != usual) {
        running.line(Phase::Policies, format!("igmp ssm-range add {range}"));
    }
    for interface in igmp.router_interfaces() {
        if let Ok(name) = interfaces.name(interface) {
            running.line(Phase::Policies, format!("igmp enable router {}", word(&name)));
        }
    }
    for ProxyInfo { table, upstream, downstream } in igmp.proxies() {
        let all = [("igmp proxy-dev", upstream)].into_iter();
        for (command, interface) in all.chain(downstream.into_iter().map(|i| ("igmp proxy-dev itf", i))) {
            if let Ok(name) = interfaces.name(interface) {
                running.line(Phase::Policies, format!("{command} add vrf-id {table} {}", word(&name)));
            }
        }
    }
}
