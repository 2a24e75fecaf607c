//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(
        Phase::Settings,
        "set interface proxy-arp <interface> enable",
        "set interface proxy-arp <interface> disable",
    ),
    LineKind::item(
        Phase::Neighbors,
        "set arp proxy [table-ID <table:u32>] start <first:ip4-address> end <last:ip4-address>",
        "set arp proxy del [table-ID <table>] start <first> end <last>",
    )
    .needs(&["[ip table <table>]"]),
];
