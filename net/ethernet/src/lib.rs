//! ethernet-input: from a frame to the protocol it carries.
//!
//! One node: it checks that the frame is for this station and takes the header off. [`Ethernet`] is the control plane:
//! modules register there which node gets frames of which type, and sub-interfaces take frames with tags ([`Match`]).
//! Packets read [`TypeTable`] and [`VlanTable`]; those of plain IP without tags read neither.
#![forbid(unsafe_code)]

mod api;
mod blocks;
mod cli;
mod control;
mod lines;
mod llc;
pub mod node;
mod running;
mod types;
mod vlan;

use std::rc::Rc;
use std::sync::Arc;

use shoal_interface::Interfaces;
use shoal_module::{Control, InitError, Module};

pub use control::{Ethernet, SubError};
pub use llc::{LlcTable, Snap};
pub use node::input::EthernetInput;
pub use node::switched::SwitchedInput;
use node::tagged_superpath::TaggedSuperpath;
pub use shoal_interface::{Exact, Inner, Match, Sub, TagKind, Vid};
pub use types::TypeTable;
pub use vlan::{Tags, VlanTable};

/// The module.
pub static MODULE: Module = Module {
    name: "ethernet",
    description: "Ethernet frames in, sub-interfaces by their tags",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?.table();
    let (types, vlans) = (TypeTable::new(), vlan::VlanWriter::new()?);
    let (l2, llc) = (Arc::default(), llc::LlcTable::default());
    let input = Arc::new(EthernetInput {
        interfaces,
        vlans: vlans.table().clone(),
        types: types.clone(),
        l2: Arc::clone(&l2),
        llc: llc.clone(),
    });
    control.put(Arc::clone(&input));
    let node = control.graph()?.add_plain(input)?;
    let sorts = TaggedSuperpath {
        interfaces: control.get::<Interfaces>()?.table(),
        vlans: vlans.table().clone(),
        ethernet: node,
    };
    let sorts = control.graph()?.add_frame(sorts)?;
    let refused = |e: shoal_interface::InterfaceError| InitError::Other(e.to_string());
    control.get::<Interfaces>()?.sort_tags_by(sorts).map_err(refused)?;
    control.put_rc(Ethernet::new(control, node, types, vlans, (l2, llc))?);
    Ok(())
}
