//! The commands that rebuild it.

use shoal_bfd::Hop;
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::control::family_word;
use crate::{Peer, RoleSource, SessionSync, Timers};

/// What says who forwards, as it is configured; `None`: its interface has gone.
pub(crate) fn role_words(source: RoleSource, interfaces: &Interfaces) -> Option<String> {
    let name = |interface| Some(word(&interfaces.name(interface).ok()?).to_string());
    Some(match source {
        RoleSource::Active => "active".into(),
        RoleSource::Standby => "standby".into(),
        RoleSource::Vrrp(group) => {
            let family = family_word(group.family);
            format!("vrrp {} vr_id {}{family}", name(group.interface)?, group.number)
        }
        RoleSource::Interface(interface) => format!("interface {}", name(interface)?),
        RoleSource::Bfd(key) => {
            let over = match key.hop {
                Hop::Multi => String::new(),
                Hop::Single(interface) => format!(" over {}", name(interface)?),
            };
            format!("bfd local-addr {} peer-addr {}{over}", key.local, key.peer)
        }
    })
}

/// The words of a peer.
pub(crate) fn peer_words(peer: &Peer) -> String {
    let Peer { address, local, port, key } = peer;
    let port = if *port == Peer::PORT { String::new() } else { format!(" port {port}") };
    let key = key.as_ref().map_or_else(|| "no-authentication".into(), |key| format!("key {}", key.to_hex()));
    format!("{address} local {local}{port} {key}")
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(sync) = running.part::<SessionSync>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let timers = sync.timers();
    if timers != Timers::default() {
        let Timers { hello, dead, refresh } = timers;
        let line = format!("session-sync timers hello {hello} dead {dead} refresh {refresh}");
        running.line(Phase::Policies, line);
    }
    if sync.role_source() != RoleSource::Active
        && let Some(role) = role_words(sync.role_source(), &interfaces)
    {
        running.line(Phase::Policies, format!("session-sync role {role}"));
    }
    if let Some(peer) = sync.peer() {
        running.line(Phase::Policies, format!("session-sync peer {}", peer_words(&peer)));
    }
}
