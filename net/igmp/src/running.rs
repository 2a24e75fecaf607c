//! What rebuilds which groups are listened to.

use std::net::Ipv4Addr;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Igmp;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(igmp), Some(interfaces)) = (running.part::<Igmp>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    for info in igmp.list() {
        let Ok(name) = interfaces.name(info.interface) else { continue };
        let name = word(&name);
        running.line(Phase::Policies, format!("igmp enable host {name}"));
        for group in info.groups {
            let any = group.any.then_some(Ipv4Addr::UNSPECIFIED);
            for source in any.into_iter().chain(group.sources) {
                let line = format!("igmp listen enable int {name} saddr {source} gaddr {}", group.group);
                running.line(Phase::Policies, line);
            }
        }
    }
}
