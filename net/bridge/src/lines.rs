//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set bridge-domain default-learn-limit <limit:u32>", "", "set bridge-domain default-learn-limit 16777216").first(),
    LineKind::item(Phase::Tables, "create bridge-domain <number:u32> [learn <learn:u8>] [forward <forward:u8>] [uu-flood <uu-flood:u8>] [flood <flood:u8>] [arp-term <arp-term:u8>] [arp-ufwd <arp-ufwd:u8>] [mac-age <mac-age:u32>] [bd-tag <bd-tag:word>]", "create bridge-domain <number> del").key("number").makes("bridge-domain <number>").recreates("the bridge domain"),
    LineKind::setting(Phase::Tables, "set bridge-domain learn-limit <number:u32> <limit:u32>", "number", "set bridge-domain learn-limit <number> default").needs(&["bridge-domain <number>"]),
    LineKind::setting(Phase::Tables, "set bridge-domain loop-protection <number:u32> moves <moves:u32> [block <block:u32>]", "number", "set bridge-domain loop-protection <number> off").needs(&["bridge-domain <number>"]),
    LineKind::item(Phase::Settings, "set interface l2 bridge <interface> <number:u32> [bvi | uu-fwd] [<group:u8>]", "set interface l3 <interface>").key("interface").needs(&["bridge-domain <number>"]).makes("l2 of <interface>"),
    LineKind::item(Phase::Policies, "set interface l2 learn <interface> disable", "set interface l2 learn <interface>").needs(&["l2 of <interface>"]),
    LineKind::item(Phase::Policies, "set interface l2 forward <interface> disable", "set interface l2 forward <interface>").needs(&["l2 of <interface>"]),
    LineKind::item(Phase::Policies, "set interface l2 flood <interface> disable", "set interface l2 flood <interface>").needs(&["l2 of <interface>"]),
    LineKind::item(Phase::Policies, "set interface l2 storm-control <interface> [broadcast <broadcast:u32>] [multicast <multicast:u32>] [unknown-unicast <unknown-unicast:u32>]", "set interface l2 storm-control <interface> off").key("interface").needs(&["l2 of <interface>"]),
    LineKind::item(Phase::Neighbors, "set bridge-domain arp entry <number:u32> <address:ip-address> <mac>", "... del").key("number address").needs(&["bridge-domain <number>"]),
    LineKind::item(Phase::Neighbors, "l2fib add <mac> <number:u32> {filter | <interface> [static | bvi]}", "l2fib del <mac> <number>").key("mac number").needs(&["bridge-domain <number>", "[?l2 of <interface>]"]),
];
