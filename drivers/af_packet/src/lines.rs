//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use crate::control::find;

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create host-interface name <name:word> [hw-addr <mac>] [num-rx-queues <rx:u32>] [num-tx-queues <tx:u32>] [mode ip] [qdisc-bypass-enable] [cksum-gso-disable] [v3]", "delete host-interface name <name>").key("name").makes("interface host-<name>").recreates("the interface").checked_by(check),
];

/// The kernel has the interface.
fn check(_: &Control, args: &Args) -> Result<(), String> {
    let name: String = args.get("name").map_err(|e| e.to_string())?;
    find(&name).map(drop).map_err(|e| e.to_string())
}
