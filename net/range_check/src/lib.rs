//! Source and port range check: TCP and UDP pass an interface where a table allows the source prefix and the port.
//!
//! [`RangeCheck`] is the control plane. The nodes `ip4-source-and-port-range-check-rx` and `-tx` read
//! [`Ranges`](ranges::Ranges), published whole.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod error;
mod lines;
mod node;
mod ranges;
mod running;

pub use control::{RangeCheck, Setting};
pub use error::RangeError;
pub use ranges::{PortRange, Verdict};

use std::rc::Rc;

use shoal_interface::{Event, Interfaces};
use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "range-check",
    description: "TCP and UDP by source prefix and destination port",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["ip4-source-and-port-range-check-rx", "ip4-source-and-port-range-check-tx"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(RangeCheck::new(control)?);
    control.get::<Interfaces>()?.subscribe(|control, event| {
        if let (Ok(check), Event::Deleting(interface)) = (control.get::<RangeCheck>(), event) {
            check.forget(interface);
        }
    });
    Ok(())
}
