//! What rebuilds bonds.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Bond, Bonds, Mode};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(bonds) = running.part::<Bonds>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for Bond { index, id, how, members, .. } in bonds.list() {
        let Ok(name) = interfaces.name(index) else { continue };
        let mut line = format!("create bond mode {}", how.mode.word());
        if how.mode.hashes() {
            let _ = write!(line, " load-balance {}", how.balance.word());
            if how.numa_only {
                line.push_str(" numa-only");
            }
        }
        if let (Some(_), Ok(data)) = (how.mac, interfaces.data(index)) {
            let _ = write!(line, " hw-addr {}", data.mac());
        }
        let _ = write!(line, " id {id}");
        if how.gso {
            line.push_str(" gso");
        }
        interfaces.write_create(running, index, line, &format!("BondEthernet{id}"));
        for member in members {
            let Ok(of) = interfaces.name(member.index) else { continue };
            let mut line = format!("bond add {} {}", word(&name), word(&of));
            if member.how.passive {
                line.push_str(" passive");
            }
            if member.how.long_timeout {
                line.push_str(" long-timeout");
            }
            running.line_at(Phase::Settings, index.0, line);
            if how.mode == Mode::ActiveBackup && member.weight != 0 {
                let line = format!("set interface bond {} weight {}", word(&of), member.weight);
                running.line_at(Phase::Settings, index.0, line);
            }
        }
    }
}
