//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(
        Phase::Policies,
        "set interface span <interface> destination <destination:interface> {both | rx | tx}",
        "set interface span <interface> disable destination <destination>",
    )
    .key("interface destination"),
    LineKind::item(
        Phase::Policies,
        "set interface span <interface> l2 destination <destination:interface> {both | rx | tx}",
        "set interface span <interface> l2 disable destination <destination>",
    )
    .key("interface destination"),
];
