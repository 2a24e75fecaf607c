//! What rebuilds neighbour discovery: what is advertised, answered for, and taken from others.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_module::{Control, Phase, Running, word};
use shoal_wire::Ip6Prefix;
use shoal_wire::nd::PrefixFlags;

use crate::{Advertise, DefaultRoute, Nd, Prefix, RaConfig};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(nd), Some(interfaces)) = (running.part::<Nd>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    if nd.dad_transmits() != crate::control::TRANSMITS {
        running.line(Phase::System, format!("set ip6 dad transmits {}", nd.dad_transmits()));
    }
    let Some(ip6) = running.part::<Ip6>(control) else { return };
    running.each(interfaces.indices(), move |running, index| {
        let Ok(name) = interfaces.name(index) else { return };
        let name = word(&name);
        advertised(&nd.ra_config(index), &name, index, running);
        if let Some((default_route, _)) = nd.autoconfigured(index) {
            let wanted = if default_route == DefaultRoute::Wanted { " default-route" } else { "" };
            let line = format!("ip6 nd address autoconfig {name}{wanted}");
            running.line_at(Phase::Settings, index.0, line);
            if !ip6.on(index).explicit {
                // It began with that, and a command has changed it since.
                running.line_at(
                    Phase::Settings,
                    index.0,
                    format!("disable ip6 interface {name} keep-addresses"),
                );
            }
        }
        if nd.is_mirror(index) {
            running.line(Phase::Neighbors, format!("set interface ip6-nd proxy {name} enable"));
        }
        for address in nd.proxied(index) {
            running.line(Phase::Neighbors, format!("ip6 nd proxy {address} {name}"));
        }
    });
}

fn advertised(config: &RaConfig, name: &str, index: SwIfIndex, running: &mut Running) {
    let (usual, mut words) = (RaConfig::default(), String::new());
    for (word, now, then) in [
        (" ra-managed-config-flag", config.managed, usual.managed),
        (" ra-other-config-flag", config.other, usual.other),
        (" ra-suppress", config.send, usual.send),
        (" ra-suppress-link-layer", config.link_layer, usual.link_layer),
        (" ra-send-unicast", config.unicast, usual.unicast),
    ] {
        if now != then {
            words.push_str(word);
        }
    }
    // Checked against each other, so in one line.
    if config.interval != usual.interval {
        let (shortest, longest) = config.interval;
        let _ = write!(words, " ra-interval {longest} {shortest}");
    }
    if config.lifetime_secs != usual.lifetime_secs {
        let _ = write!(words, " ra-lifetime {}", config.lifetime_secs);
    }
    if config.initial != usual.initial {
        let _ = write!(words, " ra-initial {} {}", config.initial.0, config.initial.1);
    }
    if !words.is_empty() {
        running.line_at(Phase::Settings, index.0, format!("ip6 nd {name}{words}"));
    }
    for (prefix, said) in &config.prefixes {
        running.line_at(Phase::Settings, index.0, format!("ip6 nd {name}{}", of_prefix(prefix, said)));
    }
}

fn of_prefix(prefix: &Ip6Prefix, said: &Prefix) -> String {
    let (usual, mut words) = (Prefix::default(), format!(" prefix {prefix}"));
    match (said.valid_secs, said.preferred_secs) {
        (u32::MAX, u32::MAX) => words.push_str(" infinite"),
        times if times == (usual.valid_secs, usual.preferred_secs) => {}
        (valid, preferred) => drop(write!(words, " {valid} {preferred}")),
    }
    if !said.flags.contains(PrefixFlags::ON_LINK) {
        words.push_str(" off-link");
    }
    if !said.flags.contains(PrefixFlags::AUTONOMOUS) {
        words.push_str(" no-autoconfig");
    }
    if said.advertise == Advertise::No {
        words.push_str(" no-advertise");
    }
    words
}
