//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use crate::Fpm;

pub(crate) static LINES: &[LineKind] =
    &[LineKind::setting(Phase::Policies, "fpm listen {off | <address:word> [netns <netns:word>]}", "", "")
        .found(at_start)
        .flaps("the session of the routing daemon")];

/// Where the start-up file says.
fn at_start(control: &Control, _: &Args) -> Option<String> {
    Some(match control.get::<Fpm>().ok()?.listening_at_start() {
        None => "fpm listen off".to_owned(),
        Some(listen) => format!("fpm listen {listen}"),
    })
}
