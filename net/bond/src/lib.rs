//! Bonds: several Ethernet links used as one interface, `BondEthernetN`.
//!
//! [`Bonds`] is the control plane. A bond's `-tx` node gives each packet to one of the members that are active, or to all of
//! them; `bond-input` makes frames that members receive the bond's. Which members are active follows from their links
//! and their administrative state, and in mode `lacp` also from the other end's LACPDUs: the LACP module reports it by
//! [`Bonds::set_agreed`].
#![forbid(unsafe_code)]

mod announce;
mod api;
mod cli;
mod control;
mod data;
mod error;
mod hash;
mod lines;
mod mode;
mod node;
mod running;
mod show;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use api::BOND;
pub use control::{AddMember, Bond, Bonds, Create, Member, MemberEvent};
pub use error::BondError;
pub use mode::{Balance, Mode};

/// The module.
pub static MODULE: Module = Module {
    name: "bond",
    description: "Several Ethernet links used as one",
    init,
    commands: cli::COMMANDS,
    api: &[&BOND],
    features: &["bond-input"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let bonds = control.put_rc(Bonds::new(control)?);
    let weak = std::rc::Rc::downgrade(&bonds);
    control.get::<shoal_ethernet::Ethernet>()?.set_bonds(move |member| weak.upgrade()?.bond_of(member));
    Ok(())
}
