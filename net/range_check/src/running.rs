//! What rebuilds to which ports hosts may speak, and where that is checked.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::RangeCheck;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(check) = running.part::<RangeCheck>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for (table, prefix, ranges) in check.list() {
        for range in ranges {
            let line = format!("set ip source-and-port-range-check vrf {table} {prefix} range {range}");
            running.line(Phase::Policies, line);
        }
    }
    for (index, setting) in check.settings() {
        let Ok(name) = interfaces.name(index) else { continue };
        let mut line = format!("set interface ip source-and-port-range-check {}", word(&name));
        let words = ["tcp-in-vrf", "tcp-out-vrf", "udp-in-vrf", "udp-out-vrf"];
        let tables = [setting.tcp_in, setting.tcp_out, setting.udp_in, setting.udp_out];
        for (word, table) in words.into_iter().zip(tables) {
            if let Some(table) = table {
                let _ = write!(line, " {word} {table}");
            }
        }
        running.line(Phase::Policies, line);
    }
}
