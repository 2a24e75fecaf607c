//! Every form of line that `made_workers.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use super::made_workers::MadeWorkers;

pub(super) static LINES: &[LineKind] = &[
    LineKind::item(Phase::System, "create worker [cpu <cpu:u32>]", "").found(newest),
    LineKind::item(Phase::System, "delete worker <worker:u32>", "create worker")
        .flaps("the queues of the worker move to others"),
];

/// Ends the newest worker of those that were made where the line says.
fn newest(control: &Control, args: &Args) -> Option<String> {
    let cpu = args.opt::<u32>("cpu").ok()?.map(|cpu| cpu as usize);
    let worker = control.get::<MadeWorkers>().ok()?.newest(cpu)?;
    Some(format!("delete worker {worker}"))
}
