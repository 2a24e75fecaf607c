//! What rebuilds cross-connects and what is done to tags.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{L2, Mode, Output, lines_of_tags};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(l2) = running.part::<L2>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    running.each(interfaces.indices(), move |running, index| {
        let Ok(name) = interfaces.name(index) else { return };
        let name = word(&name);
        if let Mode::Xconnect(peer) = l2.mode(index)
            && let Ok(peer) = interfaces.name(peer)
        {
            running.line_at(
                Phase::Settings,
                index.0,
                format!("set interface l2 xconnect {name} {}", word(&peer)),
            );
        }
        // Behind the mode, which is a bridge's perhaps.
        for line in lines_of_tags(&l2, index, &name) {
            running.line_at(Phase::Policies, index.0, line);
        }
        if l2.output(index).has(Output::EfpFilter) {
            running.line_at(Phase::Policies, index.0, format!("set interface l2 efp-filter {name}"));
        }
    });
}
