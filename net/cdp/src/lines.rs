//! Every form of line that `lib.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[LineKind::setting(Phase::Policies, "cdp enable", "", "cdp disable")];
