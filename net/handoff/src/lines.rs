//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use crate::{DefaultPlacement, Handoff};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set handoff default {auto | off}", "", "").found(at_start),
    LineKind::setting(
        Phase::Settings,
        "set interface handoff <interface> {workers <workers:word> | auto | disable} [symmetrical] [outer] [flow-label]",
        "interface",
        "set interface handoff <interface> default",
    ),
];

/// What the start-up file says of it.
fn at_start(control: &Control, _: &Args) -> Option<String> {
    let auto = control.get::<Handoff>().ok()?.unsaid_at_start() == DefaultPlacement::Auto;
    Some(format!("set handoff default {}", if auto { "auto" } else { "off" }))
}
