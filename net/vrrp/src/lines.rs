//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "vrrp vr add <interface> vr_id <vr-id:u32> [ipv6] [priority <priority:u32>] [interval <interval:u32>] [no_preempt] [accept_mode] [unicast] [version <version:u32>] [<address:ip-address>] ...", "vrrp vr del <interface> vr_id <vr-id> [ipv6]").key("interface vr-id ipv6").makes("vrrp <interface> <vr-id> [ipv6]").recreates("the virtual router"),
    LineKind::item(Phase::Policies, "vrrp peers <interface> vr_id <vr-id:u32> [ipv6] {<peer:ip-address>} ...", "").key("interface vr-id ipv6").with_needed().needs(&["vrrp <interface> <vr-id> [ipv6]"]),
    LineKind::item(Phase::Policies, "vrrp vr track-if add <interface> vr_id <vr-id:u32> [ipv6] <tracked:interface> priority <by:u8>", "add -> del").key("interface vr-id ipv6 tracked").needs(&["vrrp <interface> <vr-id> [ipv6]"]),
    LineKind::item(Phase::Policies, "vrrp vr track-route add <interface> vr_id <vr-id:u32> [ipv6] <prefix:ip-prefix> priority <by:u8>", "add -> del").key("interface vr-id ipv6 prefix").needs(&["vrrp <interface> <vr-id> [ipv6]"]),
    LineKind::item(Phase::Policies, "vrrp proto start <interface> vr_id <vr-id:u32> [ipv6]", "vrrp proto stop <interface> vr_id <vr-id> [ipv6]").needs(&["vrrp <interface> <vr-id> [ipv6]"]),
];
