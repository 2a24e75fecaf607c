//! What rebuilds host interfaces.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Running, word};

use crate::control::{HostInterfaces, Mode};
use crate::{Qdisc, RingVersion, TxOffload};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(hosts), Some(interfaces)) =
        (running.part::<HostInterfaces>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for (index, made) in hosts.made() {
        let Ok(data) = interfaces.data(index) else { continue };
        let mut line = format!("create host-interface name {}", word(&made.name));
        // Also one that was drawn: hosts that know the router by it still do after a restart.
        if !data.mac().is_zero() {
            let _ = write!(line, " hw-addr {}", data.mac());
        }
        for (name, queues) in [("num-rx-queues", made.rx_queues), ("num-tx-queues", made.tx_queues)] {
            line.push_str(&queues.map(|n| format!(" {name} {n}")).unwrap_or_default());
        }
        let words = [
            (made.mode == Mode::Ip, " mode ip"),
            (made.qdisc == Qdisc::Bypass, " qdisc-bypass-enable"),
            (made.offload == TxOffload::Router, " cksum-gso-disable"),
            (made.version == RingVersion::V3, " v3"),
        ];
        line.extend(words.into_iter().filter(|(said, _)| *said).map(|(_, word)| word));
        interfaces.write_create(running, index, line, &format!("host-{}", made.name));
    }
}
