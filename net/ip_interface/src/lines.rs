//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[LineKind::item(
    Phase::Settings,
    "set interface unnumbered <interface> use <lender:interface>",
    "set interface unnumbered del <interface>",
)
.key("interface")
.first()];
