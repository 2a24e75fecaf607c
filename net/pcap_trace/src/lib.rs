//! Captures: packets that interfaces receive and send, and packets that are dropped, in a pcap file.
//!
//! [`PcapTrace`] is the control plane. It enables the features `pcap-rx` and `pcap-tx` on interfaces and looks at what
//! `error-drop` drops; what they see is kept in [`Store`](store::Store) until the capture ends, and written then.
//! [`DispatchTrace`] looks at every node instead, and keeps each packet once for every node it comes to.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod dispatch;
mod error;
pub mod node;
mod store;

pub use control::{CaptureSettings, PcapTrace, Status};
pub use dispatch::{DispatchStatus, DispatchTrace};
pub use error::PcapTraceError;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "pcap-trace",
    description: "Packets captured in a file",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    PcapTrace::install(control)
}
