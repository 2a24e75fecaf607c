//! The commands that rebuild it.

use std::fmt::Write as _;

use shoal_adj::Family;
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::packet::Version;
use crate::{Config, State, Vrrp};

fn of_config(config: &Config, name: &str) -> String {
    let mut line = format!("vrrp vr add {name} vr_id {}", config.key.vr_id);
    if config.key.family == Family::Ip6 {
        line.push_str(" ipv6");
    }
    if config.priority != Config::PRIORITY {
        let _ = write!(line, " priority {}", config.priority);
    }
    if config.interval != Config::INTERVAL {
        let _ = write!(line, " interval {}", config.interval);
    }
    let words = [
        (!config.preempt, " no_preempt"),
        (config.accept, " accept_mode"),
        (config.unicast, " unicast"),
        (config.version == Version::V2, " version 2"),
    ];
    words.into_iter().filter(|(is, _)| *is).for_each(|(_, word)| line.push_str(word));
    for address in &config.addresses {
        let _ = write!(line, " {address}");
    }
    line
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(vrrp) = running.part::<Vrrp>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    for info in vrrp.list() {
        let key = info.config.key;
        let Ok(name) = interfaces.name(key.interface) else { continue };
        let name = word(&name);
        line(of_config(&info.config, &name));
        let of =
            format!("{name} vr_id {}{}", key.vr_id, if key.family == Family::Ip6 { " ipv6" } else { "" });
        if !info.peers.is_empty() {
            let peers: Vec<String> = info.peers.iter().map(ToString::to_string).collect();
            line(format!("vrrp peers {of} {}", peers.join(" ")));
        }
        for (interface, by) in info.interfaces {
            if let Ok(tracked) = interfaces.name(interface) {
                line(format!("vrrp vr track-if add {of} {} priority {by}", word(&tracked)));
            }
        }
        for (prefix, by) in info.routes {
            line(format!("vrrp vr track-route add {of} {prefix} priority {by}"));
        }
        if info.machine.state != State::Initialize {
            line(format!("vrrp proto start {of}"));
        }
    }
}
