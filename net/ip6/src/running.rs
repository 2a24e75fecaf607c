//! What rebuilds IPv6 on interfaces. Who borrows addresses is told by `net/ip_interface`.

use std::collections::BTreeSet;

use shoal_fib::{Family, Fib, FibIndex};
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Ip6;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(ip6) = running.part::<Ip6>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let mut made = BTreeSet::new();
    running.each(interfaces.indices(), move |running, index| {
        // What makes it gives it addresses again.
        if interfaces.follows(index) {
            return;
        }
        let (Ok(name), on) = (interfaces.name(index), ip6.on(index)) else { return };
        let name = word(&name);
        // The table that a feature has put the interface into is needed if an address of the operator is in it.
        let is_lent = fib.is_lent(Family::Ip6, on.fib);
        let is_told = !is_lent || on.addresses.iter().any(|a| !on.learnt.contains(&a.addr()));
        if let (true, Ok(id)) = (is_told && on.fib != FibIndex::DEFAULT, fib.id_of(Family::Ip6, on.fib)) {
            if is_lent && made.insert(id) {
                running.line(Phase::Tables, format!("ip6 table add {id}"));
            }
            running.line_at(Phase::Settings, index.0, format!("set interface ip6 table {name} {id}"));
        }
        let mut set = |line: String| running.line_at(Phase::Addresses, index.0, line);
        if on.explicit {
            set(format!("enable ip6 interface {name}"));
        }
        if let Some(address) = on.chosen {
            set(format!("set ip6 link-local address {name} {address}"));
        }
        for address in on.addresses.iter().filter(|a| !on.learnt.contains(&a.addr())) {
            set(format!("set interface ip address {name} {address}"));
        }
    });
}
