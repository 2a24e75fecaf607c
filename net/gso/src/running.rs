//! What rebuilds where large packets are cut.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Gso;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(gso), Some(interfaces)) = (running.part::<Gso>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for index in gso.enabled() {
        let Ok(name) = interfaces.name(index) else { continue };
        running.line_at(
            Phase::Settings,
            index.0,
            format!("set interface feature gso {} enable", word(&name)),
        );
    }
}
