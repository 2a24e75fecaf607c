//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set ip6 dad transmits <transmits:u32>", "", "set ip6 dad transmits 0"),
    LineKind::item(Phase::Settings, "ip6 nd <interface> [ra-managed-config-flag] [ra-other-config-flag] [ra-suppress] [ra-suppress-link-layer] [ra-send-unicast] [ra-interval <longest:u32> <shortest:u32>] [ra-lifetime <lifetime:u32>] [ra-initial <count:u32> <initial:u32>]", "ip6 nd <interface> no [ra-managed-config-flag] [ra-other-config-flag] [ra-suppress] [ra-suppress-link-layer] [ra-send-unicast] [ra-interval <longest> <shortest>] [ra-lifetime <lifetime>] [ra-initial <count> <initial>]").key("interface"),
    LineKind::item(Phase::Settings, "ip6 nd <interface> prefix <prefix:ip6-prefix> [<valid:u32> <preferred:u32>] [infinite] [off-link] [no-autoconfig] [no-advertise]", "ip6 nd <interface> no prefix <prefix>").key("interface prefix"),
    LineKind::item(Phase::Settings, "ip6 nd address autoconfig <interface> [default-route]", "ip6 nd address autoconfig <interface> disable").key("interface").makes("autoconfig <interface>"),
    LineKind::item(Phase::Settings, "disable ip6 interface <interface> keep-addresses", "enable ip6 interface <interface>").needs(&["autoconfig <interface>"]),
    LineKind::item(Phase::Neighbors, "set interface ip6-nd proxy <interface> enable", "set interface ip6-nd proxy <interface> disable"),
    LineKind::item(Phase::Neighbors, "ip6 nd proxy <address:ip6-address> <interface>", "ip6 nd proxy del <address> <interface>"),
];
