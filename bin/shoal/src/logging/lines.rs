//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use super::LogHandle;

pub(super) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set logging size <size:u32>", "", "").found(size_at_start),
    LineKind::item(Phase::System, "set logging class <class:word> [level <level:word>] [syslog-level <syslog:word>] [rate-limit <limit:u64>]", "set logging class <class> reset").key("class"),
];

/// As many messages are kept as at the start.
fn size_at_start(control: &Control, _: &Args) -> Option<String> {
    let (size, _) = control.get::<LogHandle>().ok()?.0.at_start();
    Some(format!("set logging size {size}"))
}
