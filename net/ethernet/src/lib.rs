//! ethernet-input: from a frame to the protocol it carries.
//!
//! One node: it checks that the frame is for this station and takes the header off. [`Ethernet`] is the control plane:
//! modules register there which node gets frames of which type, and sub-interfaces take frames with tags ([`Match`]).
//! Packets read [`TypeTable`] and [`VlanTable`]; those of plain IP without tags read neither.
#![forbid(unsafe_code)]

mod blocks;
mod control;
pub mod node;
mod types;
mod vlan;

use std::rc::Rc;
use std::sync::Arc;

use shoal_interface::Interfaces;
use shoal_module::{Control, InitError, Module};

pub use control::{Ethernet, Sub, SubError};
pub use node::input::EthernetInput;
pub use types::TypeTable;
pub use vlan::{Exact, Inner, Match, TagKind, Tags, Vid, VlanTable};

/// The module.
pub static MODULE: Module =
    Module { name: "ethernet", description: "Ethernet frames in", init, ..Module::NONE };

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?.table();
    let (types, vlans) = (TypeTable::new(), vlan::VlanWriter::new()?);
    let l2 = Arc::default();
    let input = Arc::new(EthernetInput {
        interfaces,
        vlans: vlans.table().clone(),
        types: types.clone(),
        l2: Arc::clone(&l2),
    });
    control.put(Arc::clone(&input));
    let node = control.graph()?.add_plain(input)?;
    control.put_rc(Ethernet::new(control, node, types, vlans, l2)?);
    Ok(())
}
