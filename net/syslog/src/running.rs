//! What rebuilds it.

use std::fmt::Write as _;

use shoal_module::{Control, Phase, Running};

use crate::control::{LEAST_SIZE, PORT};
use crate::{Sender, Severity, Syslog};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(syslog) = running.part::<Syslog>(control) else { return };
    if let Some(Sender { collector, port, source, vrf, max_size }) = syslog.sender() {
        let mut line = format!("set syslog sender collector {collector} src {source}");
        let settings =
            [("port", port.into(), PORT.into()), ("vrf-id", vrf, 0), ("max-msg-size", max_size, LEAST_SIZE)];
        for (word, value, usual) in settings {
            if value != usual {
                let _ = write!(line, " {word} {value}");
            }
        }
        running.line(Phase::Policies, line);
    }
    if syslog.filter() != Severity::Informational {
        running.line(Phase::Policies, format!("set syslog filter severity {}", syslog.filter()));
    }
}
