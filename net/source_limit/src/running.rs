//! What rebuilds the limits of sources.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Limit, SourceLimit};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(limit) = running.part::<SourceLimit>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for (index, Limit { rate, burst }) in limit.limits() {
        let Ok(name) = interfaces.name(index) else { continue };
        let line = format!("set interface source-limit {} rate {rate} burst {burst}", word(&name));
        running.line_at(Phase::Settings, index.0, line);
    }
}
