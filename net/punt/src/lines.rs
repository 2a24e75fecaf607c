//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(
        Phase::Policies,
        "set punt {ip4 | ip6} {udp | tcp | ip-proto <protocol:u8>} [all | port <port:u16>]",
        "set punt [ip4] [ip6] [udp] [tcp] [ip-proto <protocol>] del [all] [port <port>]",
    ),
    LineKind::setting(
        Phase::Policies,
        "ip punt policer add rate <rate:u32> burst <burst:u32>",
        "",
        "ip punt policer del",
    ),
    LineKind::setting(
        Phase::Policies,
        "ip6 punt policer add rate <rate:u32> burst <burst:u32>",
        "",
        "ip6 punt policer del",
    ),
    LineKind::setting(
        Phase::Policies,
        "ip punt redirect add rx {all | <rx:interface>} <paths:rest>",
        "all rx",
        "ip punt redirect del rx [all] [<rx>]",
    ),
    LineKind::setting(
        Phase::Policies,
        "ip6 punt redirect add rx {all | <rx:interface>} <paths:rest>",
        "all rx",
        "ip6 punt redirect del rx [all] [<rx>]",
    ),
];
