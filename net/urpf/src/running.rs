//! What rebuilds where sources are checked.

use shoal_fib::Fib;
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Urpf;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(urpf) = running.part::<Urpf>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for s in urpf.settings() {
        let Ok(name) = interfaces.name(s.interface) else { continue };
        let table = s.table.and_then(|table| fib.id_of(s.family, table).ok());
        let table = table.map(|id| format!(" table {id}")).unwrap_or_default();
        let line = format!("set urpf {} {} {}{table} {}", s.family, s.direction, s.mode, word(&name));
        running.line_at(Phase::Settings, s.interface.0, line);
    }
}
