//! The form of the line that `running.rs` writes: how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[LineKind::setting(
    Phase::Policies,
    "bfd dataplane {listen | connect} <address:word> [netns <netns:word>]",
    "",
    "bfd dataplane off",
)
.flaps("BFD sessions of the routing daemon")];
