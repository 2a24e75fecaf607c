//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(
        Phase::Policies,
        "set syslog sender collector <collector:ip4-address> src <src:ip4-address> [port <port:u16>] [vrf-id <vrf-id:u32>] [max-msg-size <max-msg-size:u32>]",
        "",
        "set syslog sender disable",
    ),
    LineKind::setting(
        Phase::Policies,
        "set syslog filter severity <severity:word>",
        "",
        "set syslog filter severity informational",
    ),
];
