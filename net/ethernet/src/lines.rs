//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::SubInterfaces, "create sub-interfaces <interface> <number:u32> [{dot1q <dot1q:word> | dot1ad <dot1ad:word> | default | untagged}] [inner-dot1q <inner:word>] [exact-match]", "delete sub-interface <made>").key("interface number").makes("interface <interface>.<number>").recreates("the sub-interface"),
];
