//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create bond mode {round-robin | active-backup | broadcast | lacp | xor} [load-balance {l2 | l23 | l34}] [numa-only] [hw-addr <mac>] id <id:u32> [gso]", "delete bond <made>").key("id").makes("interface BondEthernet<id>").recreates("the bond"),
    LineKind::item(Phase::Settings, "bond add <bond:interface> <member:interface> [passive] [long-timeout]", "bond del <member>").key("member").makes("bond member <member>").flaps("the member"),
    LineKind::setting(Phase::Settings, "set interface bond <member:interface> weight <weight:u32>", "member", "set interface bond <member> weight 0").needs(&["bond member <member>"]),
];
