//! Fragments put together again.
//!
//! *Full reassembly* makes one packet of a datagram's fragments, for this router itself (always, unless switched off)
//! and for what an interface receives (where it is switched on). *Shallow virtual reassembly* leaves fragments as they
//! are and tells each what only the first one says: ports, TCP flags.
//!
//! ```text
//! ip4-unicast: ip4-full-reassembly-feature --fragment--+                 +--> the feature's next, as one packet
//! ip4-local -> ip4-local-full-reassembly --------------+-> ip4-full-reassembly -> ip4-local, as one packet
//!                                       other threads --> -handoff       +--> ip4-full-reassembly-expired: timeout
//! ```
//!
//! [`table`] is the bookkeeping, without packets; [`family`] what differs between IPv4 and IPv6; [`state`] what each thread
//! keeps; [`threads`] who owns which datagram; [`budget`] how many buffers all of it may hold.
#![forbid(unsafe_code)]

pub mod api;
pub mod budget;
pub mod cli;
mod control;
mod error;
pub mod family;
mod hash;
mod join;
pub mod l4;
mod lines;
mod moving;
pub mod node;
mod overlap;
mod running;
mod settings;
pub mod state;
pub mod sv_table;
pub mod table;
pub mod threads;

pub use control::{Datagram, Families, Kind, Look, Reassembly, ReassemblyStages, Side, Version};
pub use error::ReassemblyError;
pub use l4::L4;
pub use settings::Settings;
pub use table::WaitFor;

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "reassembly",
    description: "Fragments put together again",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::IP],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Bytes of a datagram's bookkeeping with a few fragments; the fragments themselves are in buffers.
const BYTES_EACH: usize = 512;

fn capacity(control: &Control) -> Vec<Capacity> {
    let (Ok(all), Ok(graph)) = (control.get::<Reassembly>(), control.graph()) else { return Vec::new() };
    let threads = graph.threads().len();
    let mut rows = Vec::new();
    let mut buffers = None;
    for (what, version, kind) in [
        ("ip4 reassemblies", Version::Ip4, Kind::Full),
        ("ip6 reassemblies", Version::Ip6, Kind::Full),
        ("ip4 sv reassemblies", Version::Ip4, Kind::ShallowVirtual),
        ("ip6 sv reassemblies", Version::Ip6, Kind::ShallowVirtual),
    ] {
        let Ok(look) = all.look(version, kind, false) else { continue };
        let most = look.settings.max_reassemblies as usize * threads;
        rows.push(Capacity::up_to(what, look.reassemblies, most, BYTES_EACH));
        buffers = Some((look.buffers as usize, look.most_buffers as usize));
    }
    let row = |(held, most)| Capacity::up_to("buffers of fragments", held, most, 0);
    rows.extend(buffers.map(row));
    rows
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let reassembly = Reassembly::new(control)?;
    control.put_rc(reassembly);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    control.get::<Reassembly>()?.connect(control)
}
