//! What rebuilds the interfaces of virtual machines.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Running, word};
use shoal_wire::MacAddress;

use crate::control::name_of;
use crate::{Detail, Role, VhostInfo, Vhosts};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(vhosts), Some(interfaces)) =
        (running.part::<Vhosts>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for info in vhosts.list(None, Detail::Brief).unwrap_or_default() {
        let mac = interfaces.data(info.index).map(|data| data.mac()).unwrap_or_default();
        interfaces.write_create(running, info.index, line(&info, mac), &name_of(info.number));
    }
}

fn line(info: &VhostInfo, mac: MacAddress) -> String {
    let mut line = format!("create vhost-user socket {}", word(&info.config.socket));
    let mut say = |said: bool, text: String| {
        if said {
            let _ = write!(line, " {text}");
        }
    };
    say(info.config.role == Role::Server, "server".into());
    say(info.config.mask != u64::MAX, format!("feature-mask {:#x}", info.config.mask));
    // Also one that was drawn: hosts that know the router by it still do after a restart.
    say(!mac.is_zero(), format!("hwaddr {mac}"));
    say(true, format!("renumber {}", info.number));
    say(info.config.gso, "gso".into());
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateVhost, Features};

    #[test]
    fn an_interface_is_written_with_everything_that_was_asked_for() {
        let info = VhostInfo {
            index: shoal_interface::SwIfIndex(3),
            name: "VirtualEthernet0/0/7".into(),
            number: 7,
            config: CreateVhost {
                socket: "/run/my vm.sock".into(),
                role: Role::Server,
                mask: 0x1_0000_8000,
                gso: true,
                ..CreateVhost::default()
            },
            path: "/run/my vm.sock".into(),
            connected: false,
            ready: false,
            why: String::new(),
            connections: 0,
            refused: 0,
            offered: Features(0),
            features: Features(0),
            protocol: Features(0),
            regions: Vec::new(),
            rings: Vec::new(),
        };
        assert_eq!(
            line(&info, MacAddress([2, 0xfe, 0, 0, 0, 1])),
            "create vhost-user socket \"/run/my vm.sock\" server feature-mask 0x100008000 hwaddr 02:fe:00:00:00:01 \
             renumber 7 gso"
        );
    }
}
