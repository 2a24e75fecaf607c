//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(
        Phase::Settings,
        "set interface ip6 table <interface> <table:u32>",
        "interface",
        "set interface ip6 table <interface> 0",
    )
    .needs(&["ip6 table <table>"])
    .makes("ip6 of <interface>")
    .flaps("the addresses of the interface"),
    LineKind::item(
        Phase::Addresses,
        "enable ip6 interface <interface>",
        "disable ip6 interface <interface> keep-addresses",
    )
    .needs(&["?ip6 of <interface>"]),
    LineKind::setting(
        Phase::Addresses,
        "set ip6 link-local address <interface> <address:ip6-address>",
        "interface",
        "set ip6 link-local address <interface> auto",
    )
    .needs(&["?ip6 of <interface>"]),
    LineKind::item(
        Phase::Addresses,
        "set interface ip address <interface> <address:ip6-prefix>",
        "set interface ip address del <interface> <address>",
    )
    .in_order_of("interface")
    .needs(&["?ip6 of <interface>"]),
];
