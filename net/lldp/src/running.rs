//! What rebuilds the settings of LLDP.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Lldp, Settings};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(lldp) = running.part::<Lldp>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let (settings, usual) = (lldp.settings(), Settings::default());
    let mut line = "set lldp".to_owned();
    if settings.system_name != usual.system_name {
        let _ = write!(line, " system-name {}", word(&settings.system_name));
    }
    if settings.tx_hold != usual.tx_hold {
        let _ = write!(line, " tx-hold {}", settings.tx_hold);
    }
    if settings.tx_interval != usual.tx_interval {
        let _ = write!(line, " tx-interval {}", settings.tx_interval);
    }
    if settings != usual {
        running.line(Phase::Settings, line);
    }
    for look in lldp.list() {
        let Ok(name) = interfaces.name(look.index) else { continue };
        let mut line = format!("set interface lldp {}", word(&name));
        if !look.on.description.is_empty() {
            let _ = write!(line, " port-desc {}", word(&look.on.description));
        }
        if let Some(address) = look.on.management_ip4 {
            let _ = write!(line, " mgmt-ip4 {address}");
        }
        if let Some(address) = look.on.management_ip6 {
            let _ = write!(line, " mgmt-ip6 {address}");
        }
        if !look.on.management_oid.is_empty() {
            let _ = write!(line, " mgmt-oid {}", word(&String::from_utf8_lossy(&look.on.management_oid)));
        }
        running.line_at(Phase::Settings, look.index.0, line);
    }
}
