//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "igmp enable host <interface>", "igmp disable host <interface>")
        .makes("igmp host <interface>"),
    LineKind::item(
        Phase::Policies,
        "igmp listen enable int <interface> saddr <saddr:ip4-address> gaddr <gaddr:ip4-address>",
        "enable -> disable",
    )
    .needs(&["igmp host <interface>"]),
    LineKind::item(Phase::Policies, "igmp ssm-range del 232.0.0.0/8", "igmp ssm-range add 232.0.0.0/8"),
    LineKind::item(Phase::Policies, "igmp ssm-range add <range:ip4-prefix>", "add -> del"),
    LineKind::item(Phase::Policies, "igmp enable router <interface>", "igmp disable router <interface>"),
    LineKind::item(Phase::Policies, "igmp proxy-dev add vrf-id <vrf:u32> <interface>", "add -> del")
        .key("vrf")
        .makes("igmp proxy <vrf>"),
    LineKind::item(Phase::Policies, "igmp proxy-dev itf add vrf-id <vrf:u32> <interface>", "add -> del")
        .needs(&["igmp proxy <vrf>"]),
];
