//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] =
    &[LineKind::item(Phase::Interfaces, "pipe create instance <instance:u32>", "pipe delete <made>")
        .key("instance")
        .makes("interface pipe<instance>; interface pipe<instance>.0; interface pipe<instance>.1")
        .recreates("the pipe and its two ends")];
