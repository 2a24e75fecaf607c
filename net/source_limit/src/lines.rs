//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[LineKind::setting(
    Phase::Settings,
    "set interface source-limit <interface> rate <rate:u32> burst <burst:u32>",
    "interface",
    "set interface source-limit <interface> disable",
)];
