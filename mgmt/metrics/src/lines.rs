//! Every form of line that `lib.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

pub(crate) static LINES: &[LineKind] =
    &[LineKind::setting(Phase::System, "set metrics {listen <address:word> | disable}", "", "")
        .found(at_start)
        .flaps("connections of scrapers")];

/// What the start-up file says of it.
fn at_start(control: &Control, _: &Args) -> Option<String> {
    Some(match crate::first(control).and_then(Result::ok) {
        Some(address) => format!("set metrics listen {address}"),
        None => "set metrics disable".to_owned(),
    })
}
