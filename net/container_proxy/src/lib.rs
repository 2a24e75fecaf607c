//! Container proxies: packets to addresses behind an interface end at this router.
//!
//! [`ContainerProxy`] is the control plane; there is no data plane but a route to `ip4-local` or `ip6-local`.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod lines;
mod running;

pub use control::{ContainerProxy, ProxyError};

use std::rc::Rc;

use shoal_interface::{Event, Interfaces};
use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "container-proxy",
    description: "Addresses of containers whose packets this router takes",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(ContainerProxy::new(control)?);
    control.get::<Interfaces>()?.subscribe(|control, event| {
        if let (Ok(proxy), Event::Deleting(interface)) = (control.get::<ContainerProxy>(), event) {
            proxy.forget(interface);
        }
    });
    Ok(())
}
