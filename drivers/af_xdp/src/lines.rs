//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use crate::control::kernel_has;

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create interface af_xdp host-if <host:word> name <name:word> [mac-reuse | hw-addr <mac>] [num-rx-queues <queues:word>] [rx-queue-size <rx-size:u32>] [tx-queue-size <tx-size:u32>] [netns <netns:word>] [zero-copy | no-zero-copy] [pool-memory | own-memory] [busy-poll-usecs <usecs:u32> busy-poll-budget <budget:u32>] [multi-buffer] [no-syscall-lock] [force] [pinhole <pinhole:word>]", "delete interface af_xdp <made>").key("name").makes("interface <name>").recreates("the interface").checked_by(check),
];

/// The kernel has the interface, in its network namespace.
fn check(_: &Control, args: &Args) -> Result<(), String> {
    let name: String = args.get("host").map_err(|e| e.to_string())?;
    let netns: Option<String> = args.opt("netns").map_err(|e| e.to_string())?;
    kernel_has(&name, netns.as_deref()).map_err(|e| e.to_string())
}
