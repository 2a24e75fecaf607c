//! What rebuilds it.

use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::control::TOS;
use crate::{Bfd, Hop, State};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(bfd) = running.part::<Bfd>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for (id, key, _) in bfd.keys() {
        let secret = key.secret().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let line = format!("bfd key set conf-key-id {id} type {} secret {secret}", key.kind.word());
        running.line(Phase::Policies, line);
    }
    if bfd.tos() != TOS {
        running.line(Phase::Policies, format!("bfd udp tos {}", bfd.tos()));
    }
    for info in bfd.list().into_iter().filter(|info| !info.is_offloaded) {
        let (key, session) = (info.key, &info.session);
        let hop = match key.hop {
            Hop::Multi => "multihop".to_owned(),
            Hop::Single(interface) => match interfaces.name(interface) {
                Ok(name) => format!("interface {}", word(&name)),
                Err(_) => continue,
            },
        };
        let of = format!("{hop} local-addr {} peer-addr {}", key.local, key.peer);
        let parameters = session.parameters;
        let mut line = format!(
            "bfd udp session add {of} desired-min-tx {} required-min-rx {} detect-mult {}",
            parameters.desired_min_tx, parameters.required_min_rx, parameters.detect_mult
        );
        if let Some(auth) = session.next_auth.unwrap_or(session.auth) {
            let _ = write!(line, " conf-key-id {} bfd-key-id {}", auth.conf_key, auth.key_id);
        }
        running.line(Phase::Policies, line);
        if session.state == State::AdminDown {
            running.line(Phase::Policies, format!("bfd udp session set-flags admin down {of}"));
        }
    }
    if let Some(source) = bfd.echo_source()
        && let Ok(name) = interfaces.name(source.interface)
    {
        running.line(Phase::Policies, format!("bfd udp echo-source set interface {}", word(&name)));
    }
}
