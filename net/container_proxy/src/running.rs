//! What rebuilds whose packets are taken.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::ContainerProxy;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(proxy) = running.part::<ContainerProxy>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for (prefix, interface) in proxy.list() {
        if let Ok(name) = interfaces.name(interface) {
            let host = prefix.len() == prefix.max_len();
            let what = if host { prefix.addr().to_string() } else { prefix.to_string() };
            running.line(Phase::Policies, format!("ip container {what} {}", word(&name)));
        }
    }
}
