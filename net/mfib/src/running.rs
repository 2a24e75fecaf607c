//! What rebuilds multicast routes: what operators and clients configured, not what listeners want.

use std::fmt::Write;

use shoal_adj::Family;
use shoal_fib::Fib;
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Change, EntryFlags, ItfFlags, Member, Mfib, Prefix};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(mfib) = running.part::<Mfib>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for info in Family::ALL.into_iter().flat_map(|family| fib.list_tables(family)) {
        for (prefix, said) in mfib.said(info.family, info.index) {
            running.line(Phase::Routes, line(&interfaces, info.id, &prefix, &said));
        }
    }
}

fn line(interfaces: &Interfaces, table: u32, prefix: &Prefix, said: &Change) -> String {
    let mut line = "ip mroute add".to_owned();
    if table != 0 {
        let _ = write!(line, " table {table}");
    }
    let (group, len, source) = prefix.parts();
    // Writing to a String cannot fail.
    let _ = match source {
        Some(source) => write!(line, " {source} {group}"),
        None => write!(line, " {group}/{len}"),
    };
    for (flag, name) in EntryFlags::NAMES {
        if said.flags.has(flag) {
            let _ = write!(line, " {name}");
        }
    }
    for (member, flags) in &said.members {
        let name = match member {
            Member::Local => "local".to_owned(),
            Member::Interface(index) => match interfaces.name(*index) {
                Ok(name) => word(&name).into_owned(),
                Err(_) => continue,
            },
        };
        let _ = write!(line, " via {name}");
        for (flag, name) in ItfFlags::NAMES {
            if flags.has(flag) && flag != ItfFlags::SIGNAL_PRESENT {
                let _ = write!(line, " {name}");
            }
        }
    }
    line
}
