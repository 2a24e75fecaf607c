//! Port mirroring (SPAN): copies of what interfaces receive and send go out of other interfaces.
//!
//! [`Span`] is the control plane. `span-input` and `span-output` copy frames as devices give and take them, `span-l2-input` and
//! `span-l2-output` what bridges and cross-connects get and send. A copy is flagged ([`shoal_buffer::Flags::MIRRORED`]) and
//! never copied again.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod lines;
pub mod node;
mod running;
mod table;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use control::{Mirror, Span, SpanError};
pub use table::{Level, MirrorDirections, Mirrors};

/// The module.
pub static MODULE: Module = Module {
    name: "span",
    description: "Port mirroring: copies of what interfaces receive and send",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["span-input", "span-output"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Span::new(control)?);
    Ok(())
}
