//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set ip unreachables on", "", "set ip unreachables off"),
    LineKind::setting(
        Phase::Settings,
        "set interface ip table <interface> <table:u32>",
        "interface",
        "set interface ip table <interface> 0",
    )
    .needs(&["ip table <table>"])
    .makes("ip of <interface>")
    .flaps("the addresses of the interface"),
    LineKind::item(
        Phase::Settings,
        "set interface ip directed-broadcast <interface> enable",
        "set interface ip directed-broadcast <interface> disable",
    ),
    LineKind::item(Phase::Addresses, "enable ip4 interface <interface>", "disable ip4 interface <interface>"),
    LineKind::item(
        Phase::Addresses,
        "set interface ip address <interface> <address:ip4-prefix>",
        "set interface ip address del <interface> <address>",
    )
    .in_order_of("interface")
    .needs(&["?ip of <interface>"]),
];
