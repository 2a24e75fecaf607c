//! No host sends more packets through an interface than it may, whatever the others do.
//!
//! [`SourceLimit`] is the control plane: it enables the features `ip4-source-limit` and `ip6-source-limit` on an interface and
//! says at what rate a host may send. What is known of the hosts ([`hosts`]) is kept by each thread for itself: the nodes are
//! given it by `&mut`, and the thread's timer forgets hosts that are silent.
//!
//! This crate is the example of `docs/guide/add-a-feature.md`, which says why each file is there.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
pub mod hosts;
mod limits;
mod lines;
pub mod node;
mod running;

pub use control::{Host, Limit, LimitError, Look, SourceLimit, SourceLimitStages};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "source_limit",
    description: "Packets of one host limited in rate",
    init,
    commands: cli::COMMANDS,
    features: &["ip4-source-limit", "ip6-source-limit"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(SourceLimit::new(control)?);
    Ok(())
}
