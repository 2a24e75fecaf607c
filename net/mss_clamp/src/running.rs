//! What rebuilds where TCP segment sizes are lowered.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Directions, MssClamp};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(clamp), Some(interfaces)) =
        (running.part::<MssClamp>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for (index, settings) in clamp.settings() {
        let Ok(name) = interfaces.name(index) else { continue };
        let mut line = format!("set interface tcp-mss-clamp {}", word(&name));
        for (family, setting) in ["ip4", "ip6"].into_iter().zip(settings) {
            let which = match setting.directions {
                Directions::NONE => continue,
                Directions::BOTH => "enable",
                Directions::RX => "rx",
                Directions::TX => "tx",
            };
            let _ = write!(line, " {family} {which} {family}-mss {}", setting.mss);
        }
        running.line_at(Phase::Settings, index.0, line);
    }
}
