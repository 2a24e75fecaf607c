//! What rebuilds the neighbours that an operator gave and the limits of the tables. What the network told is learnt again.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use std::rc::Rc;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Families;
use crate::table::{FibEntry, Limits, Origin, WhenFull};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for (family, neighbours) in Families::of(control).all() {
        let (now, usual) = (neighbours.limits(), Limits::default());
        let mut line = format!("set ip neighbor-config {family}");
        let before = line.len();
        if now.entries != usual.entries {
            let _ = write!(line, " limit {}", now.entries);
        }
        if now.interface_entries != usual.interface_entries {
            let _ = write!(line, " interface-limit {}", now.interface_entries);
        }
        if now.age != usual.age {
            let _ = write!(line, " age {}", now.age.as_secs());
        }
        if now.when_full != usual.when_full {
            line.push_str(if now.when_full == WhenFull::Recycle { " recycle" } else { " norecycle" });
        }
        if line.len() > before {
            running.line(Phase::System, line);
        }
        let interfaces = Rc::clone(&interfaces);
        running.each(neighbours.list(), move |running, info| {
            if !neighbours.is_given((info.interface, info.address)) {
                return;
            }
            let Ok(name) = interfaces.name(info.interface) else { return };
            let entry = if info.neighbour.fib_entry == FibEntry::Unwanted { " no-fib-entry" } else { "" };
            let (name, mac) = (word(&name), info.neighbour.mac);
            let fixed = if info.neighbour.origin == Origin::Static { " static" } else { "" };
            let line = format!("set ip neighbor {name} {} {mac}{fixed}{entry}", info.address);
            running.line(Phase::Neighbors, line);
        });
    }
}
