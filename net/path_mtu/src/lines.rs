//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(
        Phase::System,
        "set ip pmtu-learning {on | off} lifetime <lifetime:u32> least <least:u16>",
        "",
        "set ip pmtu-learning on lifetime 600 least 552",
    ),
    LineKind::setting(
        Phase::Policies,
        "set ip pmtu <peer:ip-address> <mtu:u32> [table <table:u32>]",
        "peer table",
        "set ip pmtu <peer> del [table <table>]",
    ),
];
