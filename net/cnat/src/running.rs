//! The commands that rebuild it.

use std::fmt::Write;

use shoal_module::{Control, Phase, Running, word};

use crate::cli::spec_text;
use crate::policy::PolicyKind;
use crate::{Cnat, SnatSpec, flags};

fn addresses(cnat: &Cnat, spec: &SnatSpec) -> String {
    let mut line = "set cnat snat-policy addr".to_owned();
    if !spec.ip4.is_unspecified() {
        let _ = write!(line, " {}", spec.ip4);
    }
    if !spec.ip6.is_unspecified() {
        let _ = write!(line, " {}", spec.ip6);
    }
    if let Some(name) = spec.interface.and_then(|interface| cnat.interfaces().name(interface).ok()) {
        let _ = write!(line, " {}", word(&name));
    }
    if spec.table != 0 {
        let _ = write!(line, " table {}", spec.table);
    }
    if spec.back_table != spec.table {
        let _ = write!(line, " return-table {}", spec.back_table);
    }
    if spec.flags & flags::NO_CLIENT != 0 {
        line += " no-client";
    }
    line + if spec.flags & flags::USE_AS_DEFAULT == 0 { " no-default" } else { "" }
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(cnat) = running.part::<Cnat>(control) else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    let interfaces = cnat.interfaces();
    let name = |interface| interfaces.name(interface).map(|name| word(&name).into_owned());
    for spec in cnat.translations().values() {
        line(spec_text(spec, interfaces));
    }
    for spec in cnat.snats() {
        line(addresses(&cnat, &spec));
    }
    for prefix in cnat.excluded() {
        line(format!("set cnat snat-policy prefix {prefix}"));
    }
    for (interface, list) in cnat.policy_interfaces() {
        if let Ok(name) = name(interface) {
            line(format!("set cnat snat-policy if table {} {name}", list.word()));
        }
    }
    if cnat.policy() != PolicyKind::None {
        line(format!("set cnat snat-policy {}", cnat.policy()));
    }
    for name in cnat.features().into_iter().filter_map(|interface| name(interface).ok()) {
        line(format!("set cnat feature {name} enable"));
    }
}
