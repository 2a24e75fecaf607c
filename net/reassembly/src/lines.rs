//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set ip local-reassembly {off | ip4 | ip6}", "", "set ip local-reassembly on"),
    LineKind::item(Phase::System, "set ip4-full-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]", "set ip4-full-reassembly timeout 60000 max-reassemblies 1024 max-fragments 128 expire-walk-interval 1000").key(""),
    LineKind::item(Phase::System, "set ip6-full-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]", "set ip6-full-reassembly timeout 60000 max-reassemblies 1024 max-fragments 128 expire-walk-interval 1000").key(""),
    LineKind::item(Phase::System, "set ip4-sv-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]", "set ip4-sv-reassembly timeout 5000 max-reassemblies 1024 max-fragments 16 expire-walk-interval 1000").key(""),
    LineKind::item(Phase::System, "set ip6-sv-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]", "set ip6-sv-reassembly timeout 5000 max-reassemblies 1024 max-fragments 16 expire-walk-interval 1000").key(""),
    LineKind::item(Phase::System, "set ip reassembly extended {ip4 | ip6} on", "set ip reassembly extended [ip4] [ip6] off"),
    LineKind::setting(Phase::Settings, "set interface reassembly <interface> {on | ip4 | ip6}", "interface", "set interface reassembly <interface> off"),
    LineKind::setting(Phase::Settings, "set interface sv-reassembly <interface> {on | ip4 | ip6} [output]", "interface output", "set interface sv-reassembly <interface> off [output]"),
];
