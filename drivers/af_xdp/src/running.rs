//! What rebuilds AF_XDP interfaces.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Running, word};

use crate::config::{CreateXdp, Mac, Queues};
use crate::control::XdpInterfaces;
use crate::sys::{Copying, PacketMemory};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(xdps), Some(interfaces)) =
        (running.part::<XdpInterfaces>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for (index, mut asked) in xdps.made() {
        let Ok(made_as) = interfaces.made_as(index) else { continue };
        // Also one that was drawn: neighbours know the router by it after a restart, too.
        if asked.mac != Mac::Kernels
            && let Ok(data) = interfaces.data(index)
        {
            asked.mac = Mac::Given(data.mac());
        }
        interfaces.write_create(running, index, line(&asked, &made_as), &made_as);
    }
}

fn line(asked: &CreateXdp, name: &str) -> String {
    let mut line = format!("create interface af_xdp host-if {} name {}", word(&asked.host_if), word(name));
    match asked.mac {
        Mac::Random => {}
        Mac::Given(mac) => drop(write!(line, " hw-addr {mac}")),
        Mac::Kernels => line.push_str(" mac-reuse"),
    }
    match asked.queues {
        Queues::Count(n) => drop(write!(line, " num-rx-queues {n}")),
        Queues::All => {}
    }
    for (name, size) in [("rx-queue-size", asked.rx_size), ("tx-queue-size", asked.tx_size)] {
        line.push_str(&size.map(|n| format!(" {name} {n}")).unwrap_or_default());
    }
    if let Some(netns) = &asked.netns {
        let _ = write!(line, " netns {}", word(netns));
    }
    line.push_str(match asked.copying {
        Copying::Auto => "",
        Copying::Copy => " no-zero-copy",
        Copying::ZeroCopy => " zero-copy",
    });
    line.push_str(match asked.memory {
        PacketMemory::Auto => "",
        PacketMemory::Pool => " pool-memory",
        PacketMemory::Own => " own-memory",
    });
    if let Some(busy) = asked.busy_poll {
        let _ = write!(line, " busy-poll-usecs {} busy-poll-budget {}", busy.usecs, busy.budget);
    }
    let words = [
        (asked.multi_buffer, " multi-buffer"),
        (asked.no_syscall_lock, " no-syscall-lock"),
        (asked.force, " force"),
    ];
    line.extend(words.into_iter().filter(|(said, _)| *said).map(|(_, word)| word));
    if !asked.pinhole.is_empty() {
        let _ = write!(line, " pinhole {}", asked.pinhole);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::BusyPoll;

    #[test]
    fn an_interface_is_written_with_everything_that_was_asked_for() {
        let asked = CreateXdp {
            host_if: "eth0".into(),
            mac: Mac::Kernels,
            queues: Queues::Count(2),
            rx_size: Some(2048),
            tx_size: Some(512),
            copying: Copying::Copy,
            memory: PacketMemory::Own,
            multi_buffer: true,
            busy_poll: Some(BusyPoll { usecs: 20, budget: 64 }),
            no_syscall_lock: true,
            netns: Some("blue".into()),
            pinhole: "host,dhcp,to:2001:db8::/32".parse().unwrap(),
            force: true,
            ..CreateXdp::default()
        };
        assert_eq!(
            line(&asked, "wan"),
            "create interface af_xdp host-if eth0 name wan mac-reuse num-rx-queues 2 rx-queue-size 2048 \
             tx-queue-size 512 netns blue no-zero-copy own-memory busy-poll-usecs 20 busy-poll-budget 64 \
             multi-buffer no-syscall-lock force pinhole host,dhcp,to:2001:db8::/32"
        );
        let plain = CreateXdp { host_if: "eth1".into(), ..CreateXdp::default() };
        assert_eq!(line(&plain, "eth1/0"), "create interface af_xdp host-if eth1 name eth1/0");
    }
}
