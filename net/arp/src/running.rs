//! What rebuilds proxy ARP.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::ProxyArp;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(proxy), Some(interfaces)) =
        (running.part::<ProxyArp>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for index in proxy.enabled() {
        let Ok(name) = interfaces.name(index) else { continue };
        let line = format!("set interface proxy-arp {} enable", word(&name));
        running.line_at(Phase::Settings, index.0, line);
    }
    // By the tables' numbers: in which order tables were made is not part of the configuration.
    let mut ranges = proxy.ranges();
    ranges.sort_by_key(|(table, range)| (*table, range.first, range.last));
    for (table, range) in ranges {
        let table = if table == 0 { String::new() } else { format!(" table-ID {table}") };
        let line = format!("set arp proxy{table} start {} end {}", range.first, range.last);
        running.line(Phase::Neighbors, line);
    }
}
