//! Neighbours: which station has an address, on each interface, for every address family.
//!
//! [`Neighbours`] is the control plane that ARP and neighbour discovery share: the [`table`] with its limits and its
//! ageing, questions that are repeated until somebody answers, packets that wait for the answer, the adjacency and
//! the host route of each neighbour. How a question looks on the wire, and whose answer is believed, is the
//! family's [`Protocol`]. All families are listed in [`Families`], which the commands go through.
#![forbid(unsafe_code)]

mod address;
mod answers;
pub mod api;
mod changes;
pub mod cli;
mod control;
pub mod counters;
mod error;
mod families;
mod lines;
pub mod message;
pub mod node;
pub mod process;
mod protocol;
mod running;
pub mod table;
pub mod throttle;

pub use address::Address;
pub use answers::{Answer, Answers, Listening};
pub use changes::{Change, Changes, Event};
pub use control::{Flush, Info, MOST_HELD_EACH, Neighbours, NewLimits, Role, State};
pub use error::NeighbourError;
pub use families::{AnyNeighbours, Families};
pub use protocol::{Protocol, Question, SilentPolicy, Timing};

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "neighbor",
    description: "Neighbour tables of both address families",
    init,
    commands: cli::COMMANDS,
    capacity,
    running: running::running,
    lines: lines::LINES,
    api: &[&api::API],
    ..Module::NONE
};

/// Bytes of a neighbour: its entry, its place by age, its route and the next hop's adjacency.
const BYTES_EACH: usize = 768;

fn capacity(control: &Control) -> Vec<Capacity> {
    let row = |(family, neighbours): (shoal_adj::Family, Rc<dyn AnyNeighbours>)| {
        let (resource, used) = (format!("{family} neighbors"), neighbours.count());
        match neighbours.limits().entries {
            0 => Capacity::by_memory(resource, used, BYTES_EACH),
            most => Capacity::up_to(resource, used, most, BYTES_EACH),
        }
    };
    Families::of(control).all().into_iter().map(row).collect()
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    Families::of(control);
    api::follow(control);
    Ok(())
}
