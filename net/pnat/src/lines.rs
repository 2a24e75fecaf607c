//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[LineKind::item(
    Phase::Policies,
    "set pnat translation interface <interface> match <rule:rest>",
    "... del",
)];
