//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Routes, "ip mroute add [table <table:u32>] <first:word> [<second:word>] [Signal] [Drop] [Connected] [Accept-all-itf] [via {local | <interface>} [Accept] [Forward] [Negate-Signal]] ...", "ip mroute del [table <table>] <first> [<second>]").key("table first second"),
];
