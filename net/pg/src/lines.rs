//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create packet-generator interface <name:word> [hw-addr <mac>] [gso-enabled] [gso-size <gso-size:u16>] [coalesce-enabled] [csum-offload-enabled] [mode {ethernet | ip4 | ip6}]", "delete packet-generator interface <made>").key("name").makes("interface <name>").recreates("the interface"),
    LineKind::setting(Phase::Settings, "packet-generator mac-filter <interface> on", "interface", "packet-generator mac-filter <interface> off"),
];
