//! What rebuilds bridge domains, members, and stations that were entered.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_l2::{Input, L2, Mode, Role};
use shoal_module::{Control, Phase, Running, word};

use crate::{Bridges, Entry, LEARN_LIMIT, LoopProtection, MacInfo, StormClass, Switch};

/// What members of a bridge have on by default.
const SWITCHES: [(Input, &str); 3] =
    [(Input::Learn, "learn"), (Input::Forward, "forward"), (Input::Flood, "flood")];

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(bridges) = running.part::<Bridges>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(l2) = running.part::<L2>(control) else { return };
    if bridges.default_learn_limit() != LEARN_LIMIT {
        let limit = bridges.default_learn_limit();
        running.line_at(Phase::System, 0, format!("set bridge-domain default-learn-limit {limit}"));
    }
    for number in bridges.numbers() {
        domain(&bridges, number, running);
    }
    let members = interfaces.indices();
    let (of, names, layer) = (bridges.clone(), interfaces.clone(), l2);
    running.each(members, move |running, index| {
        let (Ok(name), Mode::Bridge(port)) = (names.name(index), layer.mode(index)) else { return };
        let number = of.number_of(port.domain).unwrap_or(0);
        let name = word(&name);
        let role = match port.role {
            Role::Normal => "",
            Role::Bvi => " bvi",
            Role::UnknownForward => " uu-fwd",
        };
        let group = if port.group == 0 { String::new() } else { format!(" {}", port.group) };
        running.line_at(
            Phase::Settings,
            index.0,
            format!("set interface l2 bridge {name} {number}{role}{group}"),
        );
        for (feature, word) in SWITCHES {
            if !layer.input(index).has(feature) {
                running.line_at(Phase::Policies, index.0, format!("set interface l2 {word} {name} disable"));
            }
        }
        storm(&of, index, &name, running);
    });
    let groups: Vec<usize> =
        bridges.table().macs().groups().filter(|group| bridges.table().macs().occupied(*group) > 0).collect();
    running.each(groups, move |running, group| {
        for MacInfo { mac, domain, entry } in bridges.stations_of(group) {
            let Some(number) = bridges.number_of(domain) else { continue };
            // A BVI's own address comes with it.
            let own = bridges.special(number).is_ok_and(|[bvi, _]| bvi == Some(entry.interface()));
            if entry.is_learned() || entry.has(Entry::BVI) && own {
                continue;
            }
            let name = interfaces.name(entry.interface());
            let how = match (entry.has(Entry::FILTER), name) {
                (true, _) => "filter".to_owned(),
                (false, Err(_)) => continue,
                (false, Ok(name)) => {
                    let kind = match (entry.has(Entry::BVI), entry.has(Entry::STATIC)) {
                        (true, _) => " bvi",
                        (_, true) => " static",
                        _ => "",
                    };
                    format!("{}{kind}", word(&name))
                }
            };
            running.line(Phase::Neighbors, format!("l2fib add {mac} {number} {how}"));
        }
    });
}

/// Limits of what a member brings in.
fn storm(bridges: &Bridges, index: SwIfIndex, name: &str, running: &mut Running) {
    let limits = bridges.storm_limits(index);
    if limits.is_off() {
        return;
    }
    let mut line = format!("set interface l2 storm-control {name}");
    for class in StormClass::ALL {
        if let Some(limit) = limits.get(class) {
            let _ = write!(line, " {} {limit}", class.word());
        }
    }
    running.line_at(Phase::Policies, index.0, line);
}

fn domain(bridges: &Bridges, number: u32, running: &mut Running) {
    let Ok(settings) = bridges.settings(number) else { return };
    let mut line = format!("create bridge-domain {number}");
    for switch in Switch::ALL {
        if settings.has(switch) != switch.is_usual() {
            let _ = write!(line, " {} {}", switch.word(), u8::from(settings.has(switch)));
        }
    }
    if settings.mac_age != 0 {
        let _ = write!(line, " mac-age {}", settings.mac_age);
    }
    if !settings.tag.is_empty() {
        let _ = write!(line, " bd-tag {}", word(&settings.tag));
    }
    running.line_at(Phase::Tables, number, line);
    if let Ok(Some(limit)) = bridges.learn_limit(number) {
        running.line_at(Phase::Tables, number, format!("set bridge-domain learn-limit {number} {limit}"));
    }
    if let Ok(Some(LoopProtection { moves, block })) = bridges.loop_protection(number) {
        let block = if block == 0 { String::new() } else { format!(" block {block}") };
        let line = format!("set bridge-domain loop-protection {number} moves {moves}{block}");
        running.line_at(Phase::Tables, number, line);
    }
    for (address, mac) in bridges.bindings(number).unwrap_or_default() {
        running.line(Phase::Neighbors, format!("set bridge-domain arp entry {number} {address} {mac}"));
    }
}
