//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(
        Phase::Policies,
        "abf policy add id <id:u32> {ip4 | ip6} <rule:rest>",
        "abf policy del id <id> [ip4] [ip6] <rule>",
    )
    .key("id")
    .makes("abf policy <id>"),
    LineKind::item(
        Phase::Policies,
        "abf attach {ip4 | ip6} policy <policy:u32> [priority <priority:u32>] <interface>",
        "abf attach [ip4] [ip6] del policy <policy> [priority <priority>] <interface>",
    )
    .key("ip4 ip6 policy interface")
    .needs(&["abf policy <policy>"]),
];
