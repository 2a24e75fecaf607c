//! What rebuilds cross-connects of routed interfaces.

use shoal_fib::{Fib, via};
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::L3xc;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(l3xc) = running.part::<L3xc>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for info in l3xc.list() {
        let Ok(name) = interfaces.name(info.interface) else { continue };
        let to = via(&fib, &interfaces, (info.family, 0), &info.paths);
        running.line(Phase::Policies, format!("l3xc add {} {}{to}", word(&name), info.family));
    }
}
