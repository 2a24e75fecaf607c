//! DHCP: clients for IPv4 and IPv6, and relays for IPv4 and IPv6 that VPP calls proxies.
//!
//! ```text
//! ip4-unicast: ip4-dhcp-client-detect -> dhcp-proxy-to-client --\
//! ip4-local: dhcp-proxy-to-server, dhcp-proxy-to-client ---------> Dhcp (main thread): clients, relays
//! ip6-local: dhcpv6-proxy-to-server, dhcpv6-proxy-to-client ----/
//! ```
//! [`Dhcp`] is the control plane.
#![forbid(unsafe_code)]

pub mod api;
pub mod api6;
mod cli;
mod cli6;
pub mod client;
pub mod client6;
pub mod client_message6;
mod control;
pub mod exchange6;
mod lines;
pub mod message4;
pub mod message6;
pub mod node;
pub mod reconfigure6;
mod running;

pub use control::{
    Client6Info, ClientIdentity, ClientInfo, Dhcp, DhcpError, FromPrefix, RelayInfo, Replied, Server,
    VirtualSubnet,
};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "dhcp",
    description: "Dynamic Host Configuration Protocol (DHCP)",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API, &api6::ADDRESSES, &api6::PREFIXES],
    features: &["ip4-dhcp-client-detect"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let dhcp = control.put_rc(Dhcp::new(control)?);
    api6::follow(control, &dhcp);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, dhcp) = (control.processes()?, control.get::<Dhcp>()?);
    processes.spawn("dhcp-input", Rc::clone(&dhcp).listen());
    processes.spawn_ticking("dhcp-client-process", dhcp.rung(), move || dhcp.tick());
    Ok(())
}
