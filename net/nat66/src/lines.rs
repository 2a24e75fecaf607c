//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(
        Phase::Policies,
        "nat66 plugin enable [outside-vrf <outside-vrf:u32>]",
        "nat66 plugin disable",
    )
    .key("")
    .makes("nat66")
    .recreates("all translations of NAT66"),
    LineKind::item(
        Phase::Policies,
        "set interface nat66 {in <in:interface> | out <out:interface>}",
        "... del",
    )
    .needs(&["nat66"]),
    LineKind::item(
        Phase::Policies,
        "nat66 add static mapping local <local:ip6-address> external <external:ip6-address> [vrf <vrf:u32>]",
        "... del",
    )
    .needs(&["nat66"]),
];
