//! What rebuilds configured path MTUs. Those that were learnt are learnt again.

use shoal_module::{Control, Phase, Running};

use crate::{Learning, PathMtus};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(all) = running.part::<PathMtus>(control) else { return };
    let Learning { on, lifetime, least } = all.learning();
    if all.learning() != Learning::default() {
        let (on, secs) = (if on { "on" } else { "off" }, lifetime.as_secs());
        let line = format!("set ip pmtu-learning {on} lifetime {secs} least {least}");
        running.line(Phase::System, line);
    }
    for (table, peer, mtu) in all.all_said() {
        let table = if table == 0 { String::new() } else { format!(" table {table}") };
        running.line(Phase::Policies, format!("set ip pmtu {peer} {mtu}{table}"));
    }
}
