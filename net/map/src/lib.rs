//! MAP-E and MAP-T border relay (RFC 7597, RFC 7599): customers of an IPv6 network share IPv4 addresses by ranges of ports, and the
//! relay keeps no state of them.
//!
//! ```text
//! ip4-unicast: ip4-map, ip4-map-t --address and port of a customer--> ip6-lookup
//! ip6-unicast: ip6-map, ip6-map-t --the customer has that address and port--> ip4-lookup
//! ```
//! [`Map`] is the control plane. How addresses follow from each other, [`domain`] says.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
pub mod config;
mod control;
pub mod domain;
mod lines;
pub mod next_hops;
pub mod node;
mod running;

pub use control::{Map, MapError, Mode, Shown};
pub use node::stage::MapStages;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "map",
    description: "MAP-E and MAP-T border relay",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["ip4-map", "ip6-map", "ip4-map-t", "ip6-map-t"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Map::new(control)?);
    Ok(())
}
