//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::System, "set ip neighbor-config {ip4 | ip6} [limit <limit:u32>] [interface-limit <interface-limit:u32>] [age <age:u32>] [recycle] [norecycle]", "set ip neighbor-config [ip4] [ip6] limit 50000 interface-limit 0 age 0 norecycle").key("ip4 ip6"),
    LineKind::item(Phase::Neighbors, "set ip neighbor <interface> <address:ip-address> <mac> [static] [no-fib-entry]", "set ip neighbor del <interface> <address>").key("interface address"),
];
