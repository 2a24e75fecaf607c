//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase, word};

use crate::{Lcp, Sync};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(
        Phase::State,
        "lcp create <interface> host-if <host-if:word> [netns <netns:word>] [tun]",
        "lcp delete <interface>",
    )
    .key("interface")
    .recreates("the image in Linux, with what the kernel has on it"),
    LineKind::setting(Phase::State, "lcp default netns [<netns:word>]", "", "").found(netns_at_start),
    LineKind::setting(Phase::State, "lcp lcp-sync-unnumbered off", "", "lcp lcp-sync-unnumbered on"),
    LineKind::setting(Phase::State, "lcp lcp-auto-subint {on | off}", "", "").found(auto_subint_at_start),
    LineKind::item(Phase::State, "lcp ethertype enable <type:word>", "enable -> disable"),
    LineKind::item(Phase::State, "lcp osi-proto enable <protocol:word>", "enable -> disable"),
    LineKind::setting(Phase::State, "lcp lcp-sync {on | off}", "", "").found(sync_at_start),
];

/// The namespace that the start-up file names.
fn netns_at_start(control: &Control, _: &Args) -> Option<String> {
    let netns = control.get::<Lcp>().ok()?.default_netns_at_start();
    let netns = netns.map(|netns| format!(" {}", word(&netns))).unwrap_or_default();
    Some(format!("lcp default netns{netns}"))
}

fn on_or_off(sync: Sync) -> &'static str {
    if sync == Sync::On { "on" } else { "off" }
}

/// What the start-up file says of it.
fn auto_subint_at_start(control: &Control, _: &Args) -> Option<String> {
    Some(format!("lcp lcp-auto-subint {}", on_or_off(control.get::<Lcp>().ok()?.auto_subint_at_start())))
}

/// What the start-up file says of it.
fn sync_at_start(control: &Control, _: &Args) -> Option<String> {
    Some(format!("lcp lcp-sync {}", on_or_off(control.get::<Lcp>().ok()?.sync_at_start())))
}
