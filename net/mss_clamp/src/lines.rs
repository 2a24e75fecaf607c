//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Settings, "set interface tcp-mss-clamp <interface> [ip4 {enable | rx | tx} ip4-mss <ip4-mss:u16>] [ip6 {enable | rx | tx} ip6-mss <ip6-mss:u16>]", "set interface tcp-mss-clamp <interface> ip4 disable ip6 disable").key("interface"),
];
