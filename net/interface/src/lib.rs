//! Interfaces: hardware and software, state, MTU, MAC, counters, output.
//!
//! [`Interfaces`] is the control plane: drivers create interfaces here, operators change them, others ask for events
//! ([`Event`]). [`IfData`] is what packets read of an interface: one cache line, replaced in place. Each interface has
//! two nodes, `<name>-output` (this crate's) and `<name>-tx` (its driver's).
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod counters;
mod data;
mod error;
mod event;
mod extra_macs;
mod header;
mod host;
mod lines;
mod loopback;
mod loopback_rx;
mod names;
mod node;
mod own;
pub mod rtnetlink;
mod running;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;
mod tx_placement;
mod vlan;

pub use control::{
    Create, Device, Info, Interfaces, Layer, Mtu, MtuLayer, Need, Queue, SwitchedFeature, TxQueueInfo,
};
pub use control::{Medium, ProviderSaid, Superpath, SuperpathChoice, SuperpathObstacle, TagsSaid};
pub use data::{IfData, IfFlags, IfTable};
pub use error::InterfaceError;
pub use event::Event;
pub use header::LinkHeader;
pub use host::{
    EventOrigin, HostChange, HostEvent, HostEventHandler, HostLayer, HostLink, HostLinkKind, HostListener,
    HostMulticastRoute, HostNextHop, HostNextHops, HostPath, HostPaths, HostPort, HostPorts, HostRoute,
    HostSide, HostWay, ListingCause, Resolved,
};
pub use loopback_rx::{receive_again, send_received};
pub use names::InterfaceArg;
pub use node::arc_end::ArcEnd;
pub use node::interface_output::InterfaceOutput;
pub use node::output::Output;
pub use own::random_mac;
pub use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
pub use tx_placement::TxPlacement;
pub use vlan::{Exact, Inner, Match, Sub, TagKind, Vid};

use shoal_module::{Capacity, Control, InitError, Module};
use std::rc::Rc;

/// The module.
pub static MODULE: Module = Module {
    name: "interface",
    description: "Interfaces: state, MTU, MAC, counters, output",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API, &api::features::API],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// The arc packets run through before an interface sends them.
pub const OUTPUT_ARC: &str = "interface-output";

/// The arc received frames run through before anybody looks at them.
pub const DEVICE_INPUT_ARC: &str = "device-input";

/// Bytes of an interface beside its numbers: its two nodes, its names and links in the stats segment's directory.
const BYTES_EACH: usize = 4096;

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(interfaces) = control.get::<Interfaces>() else { return Vec::new() };
    // Each thread has two numbers of eight counters and one of nine.
    let each =
        BYTES_EACH + interfaces.graph().threads().len() * 25 * size_of::<u64>() + 2 * size_of::<IfData>();
    vec![Capacity::up_to("interfaces", interfaces.indices().len(), MAX_INTERFACES, each)]
}

fn init(control: &Rc<shoal_module::Control>) -> Result<(), InitError> {
    let interfaces = control.put_rc(Interfaces::new(control)?);
    api::watch(control, &interfaces);
    Ok(())
}
