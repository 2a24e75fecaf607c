//! What rebuilds policies and where they are attached.

use shoal_fib::{Fib, via};
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Abf;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(abf) = running.part::<Abf>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for policy in abf.policies() {
        let to = via(&fib, &interfaces, (policy.rule.family, 0), &policy.paths);
        running.line(Phase::Policies, format!("abf policy add id {} {}{to}", policy.id, policy.rule));
    }
    for a in abf.attachments() {
        let Ok(name) = interfaces.name(a.interface) else { continue };
        let priority = if a.priority == 0 { String::new() } else { format!(" priority {}", a.priority) };
        let line = format!("abf attach {} policy {}{priority} {}", a.family, a.policy, word(&name));
        running.line(Phase::Policies, line);
    }
}
