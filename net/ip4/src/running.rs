//! What rebuilds IPv4 on interfaces. Who borrows addresses is told by `net/ip_interface`.

use std::collections::BTreeSet;

use shoal_fib::{Family, Fib, FibIndex};
use shoal_interface::Interfaces;
use shoal_ip::Unreachables;
use shoal_module::{Control, Phase, Running, word};

use crate::Ip4;

pub(crate) fn running(control: &Control, running: &mut Running) {
    if Unreachables::of(control).are_sent() {
        running.line(Phase::System, "set ip unreachables on".to_owned());
    }
    let Some(ip4) = running.part::<Ip4>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let mut made = BTreeSet::new();
    running.each(interfaces.indices(), move |running, index| {
        // What makes it gives it addresses again.
        if interfaces.follows(index) {
            return;
        }
        let (Ok(name), of) = (interfaces.name(index), ip4.fib_of(index)) else { return };
        let name = word(&name);
        // The table that a feature has put the interface into is needed if an address of the operator is in it.
        let is_lent = fib.is_lent(Family::Ip4, of);
        let is_told = !is_lent || ip4.addresses(index).iter().any(|a| !ip4.is_learnt(index, *a));
        if let (true, Ok(id)) = (is_told && of != FibIndex::DEFAULT, fib.id_of(Family::Ip4, of)) {
            if is_lent && made.insert(id) {
                running.line(Phase::Tables, format!("ip table add {id}"));
            }
            running.line_at(Phase::Settings, index.0, format!("set interface ip table {name} {id}"));
        }
        if ip4.directed_broadcast(index) {
            let line = format!("set interface ip directed-broadcast {name} enable");
            running.line_at(Phase::Settings, index.0, line);
        }
        if ip4.is_enabled_without_address(index) {
            running.line_at(Phase::Addresses, index.0, format!("enable ip4 interface {name}"));
        }
        // The first is the one to speak from, here and there.
        for address in ip4.addresses(index).into_iter().filter(|address| !ip4.is_learnt(index, *address)) {
            let line = format!("set interface ip address {name} {address}");
            running.line_at(Phase::Addresses, index.0, line);
        }
    });
}
