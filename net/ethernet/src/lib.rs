//! ethernet-input: from a frame to the protocol it carries.
//!
//! One node: it checks that the frame is for this station and takes the header off.
#![forbid(unsafe_code)]

pub mod node;

use std::rc::Rc;
use std::sync::Arc;

use shoal_interface::Interfaces;
use shoal_module::{Control, InitError, Module};

pub use node::input::EthernetInput;

/// The module.
pub static MODULE: Module =
    Module { name: "ethernet", description: "Ethernet frames in", init, ..Module::NONE };

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?.table();
    let input = Arc::new(EthernetInput { interfaces });
    control.put(Arc::clone(&input));
    control.graph()?.add_packet_shared(input)?;
    Ok(())
}
