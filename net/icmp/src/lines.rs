//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(
        Phase::System,
        "set ip icmp rate-limit <rate:u32> burst <burst:u32>",
        "",
        "set ip icmp rate-limit 100 burst 100",
    ),
    LineKind::setting(
        Phase::System,
        "set ip6 icmp rate-limit <rate:u32> burst <burst:u32>",
        "",
        "set ip6 icmp rate-limit 100 burst 100",
    ),
];
