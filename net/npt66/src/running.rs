//! What rebuilds NPTv6.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Binding, Npt66};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(npt) = running.part::<Npt66>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for (interface, _, Binding { internal, external }) in npt.list() {
        let Ok(name) = interfaces.name(interface) else { continue };
        let name = word(&name);
        let line = format!("set npt66 binding interface {name} internal {internal} external {external}");
        running.line(Phase::Policies, line);
    }
}
