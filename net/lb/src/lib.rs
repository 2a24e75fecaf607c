//! Load balancer: packets for a virtual address go to one of its servers, those of a flow always to the same.
//!
//! ```text
//! ip4-lookup -> lb4-gre4 -> ip4-lookup -> the server, in a GRE tunnel; it answers the client itself
//!               | is the flow known? its server : the table of new flows (Maglev)
//!
//! server -> ip4-input -> lb-nat4-in2out -> the client: answers of translated services
//! ```
//! [`LoadBalancer`] is the control plane. The table of new flows follows from the addresses of servers alone, so routers side by
//! side give a flow the same server without telling each other of it.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
pub mod config;
mod control;
mod flow_stores;
pub mod flows;
mod lines;
pub mod node;
mod running;
pub mod vip;

pub use control::{Counted, LbError, LoadBalancer, Look, Settings};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "lb",
    description: "Load Balancer (LB)",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(LoadBalancer::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let processes = control.processes()?;
    processes.spawn("lb-servers", control.get::<LoadBalancer>()?.collect(Rc::clone(&processes)));
    Ok(())
}
