//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create vhost-user socket <socket:word> [server] [feature-mask <mask:word>] [hwaddr <mac>] renumber <number:u32> [gso]", "delete vhost-user <made>").key("number").makes("interface VirtualEthernet0/0/<number>").recreates("the interface"),
];
