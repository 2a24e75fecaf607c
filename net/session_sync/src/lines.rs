//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::Policies, "session-sync timers hello <hello:u32> dead <dead:u32> refresh <refresh:u32>", "", "session-sync timers default"),
    LineKind::setting(Phase::Policies, "session-sync role {standby | vrrp <vrrp:interface> vr_id <vr-id:u8> [ipv6] | interface <interface> | bfd local-addr <local:ip-address> peer-addr <remote:ip-address> [over <over:interface>]}", "", "session-sync role active").needs(&["[vrrp <vrrp> <vr-id> [ipv6]]"]),
    LineKind::setting(Phase::Policies, "session-sync peer <peer:ip-address> local <local:ip-address> [port <port:u32>] {key <key:word> | no-authentication}", "", "session-sync peer del"),
];
