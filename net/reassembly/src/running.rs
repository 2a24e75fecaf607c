//! What rebuilds where fragments are put together, and within which limits.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Families, Kind, Reassembly, Settings, Side, Version, WaitFor};

fn families(families: Families) -> &'static str {
    match families {
        Families { ip4: true, ip6: true } => "on",
        Families { ip4: true, ip6: false } => "ip4",
        Families { ip4: false, ip6: true } => "ip6",
        Families { ip4: false, ip6: false } => "off",
    }
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(all), Some(interfaces)) =
        (running.part::<Reassembly>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    if all.local() != Families::BOTH {
        running.line(Phase::System, format!("set ip local-reassembly {}", families(all.local())));
    }
    for (kind, usual, of) in
        [(Kind::Full, Settings::FULL, "full"), (Kind::ShallowVirtual, Settings::SHALLOW, "sv")]
    {
        for (version, name) in [(Version::Ip4, "ip4"), (Version::Ip6, "ip6")] {
            limits(&format!("set {name}-{of}-reassembly"), all.settings(version, kind), usual, running);
        }
    }
    for (version, name) in [(Version::Ip4, "ip4"), (Version::Ip6, "ip6")] {
        if all.waits(version) == WaitFor::Last {
            running.line(Phase::System, format!("set ip reassembly extended {name} on"));
        }
    }
    for index in interfaces.indices() {
        let Ok(name) = interfaces.name(index) else { continue };
        let name = word(&name);
        let on = all.interface(index);
        if on != Families::NONE {
            let line = format!("set interface reassembly {name} {}", families(on));
            running.line_at(Phase::Settings, index.0, line);
        }
        for (side, output) in [(Side::Input, ""), (Side::Output, " output")] {
            let wants = |version| all.is_sv_user((index, version, side), crate::cli::SV_USER);
            let on = Families { ip4: wants(Version::Ip4), ip6: wants(Version::Ip6) };
            if on != Families::NONE {
                let line = format!("set interface sv-reassembly {name} {}{output}", families(on));
                running.line_at(Phase::Settings, index.0, line);
            }
        }
    }
}

fn limits(command: &str, now: Settings, usual: Settings, running: &mut Running) {
    let values = [
        ("timeout", now.timeout_ms, usual.timeout_ms),
        ("max-reassemblies", now.max_reassemblies, usual.max_reassemblies),
        ("max-fragments", now.max_fragments, usual.max_fragments),
        ("expire-walk-interval", now.expire_walk_interval_ms, usual.expire_walk_interval_ms),
    ];
    let said = values.into_iter().filter(|(_, now, usual)| now != usual);
    let mut words = String::new();
    for (name, now, _) in said {
        let _ = write!(words, " {name} {now}");
    }
    if !words.is_empty() {
        running.line(Phase::System, format!("{command}{words}"));
    }
}
