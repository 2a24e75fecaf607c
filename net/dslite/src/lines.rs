//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(
        Phase::Policies,
        "dslite set aftr-tunnel-endpoint-address <address:ip6-address>",
        "",
        "dslite set aftr-tunnel-endpoint-address ::",
    )
    .flaps("all tunnels of DS-Lite"),
    LineKind::setting(
        Phase::Policies,
        "dslite set b4-tunnel-endpoint-address <address:ip6-address>",
        "",
        "dslite set b4-tunnel-endpoint-address ::",
    )
    .flaps("the tunnel of DS-Lite"),
    LineKind::item(
        Phase::Policies,
        "dslite add pool address <first:ip4-address> [- <last:ip4-address>]",
        "... del",
    )
    .flaps("sessions of the addresses"),
];
