//! BFD sessions of FRR's bfdd, run by the router: bfdd says which, the router sends, receives and watches the times.
//!
//! ```text
//! ospfd, bgpd, ... --> bfdd --- sessions, over TCP ---> the router's BFD ---> next hops that are down
//!                           <-- states, counters -------
//! ```
//! They meet at a loopback address: bfdd connects (`bfdd --dplaneaddr ipv4c:127.0.0.1:50700`) or the router does (`ipv4:`).
//! [`Dataplane`] is the control plane, and the whole of it.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
mod lines;
pub mod message;
mod running;
mod server;

pub use control::{Dataplane, DataplaneState, Meeting};

use std::rc::Rc;

use shoal_lcp::Lcp;
use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "bfd-dataplane",
    description: "BFD sessions of FRR's bfdd",
    init,
    commands: cli::COMMANDS,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    // Sessions are by the interfaces of linux-cp, which the start-up file may switch off.
    if control.get::<Lcp>().is_ok() {
        control.put_rc(Dataplane::new(control)?);
    }
    Ok(())
}
