//! Layer 2: interfaces that are bridged or cross-connected, and the features of their packets.
//!
//! [`L2`] is the control plane: the [`Mode`] of each interface, and which features it has ([`Bitmap`]). Nodes read
//! [`L2Data`] by interface, and find the next feature of a packet with [`Path`].
#![forbid(unsafe_code)]

mod bitmap;
mod control;
mod node;
mod table;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use bitmap::{Bitmap, Input, Output, Place};
pub use control::{L2, L2Error, Mode};
pub use table::{L2Data, Path};

/// The module.
pub static MODULE: Module = Module {
    name: "l2",
    description: "Layer 2: cross-connects and what bridges are made of",
    init,
    ..Module::NONE
};

/// Features of frames that come in by interfaces in layer 2.
pub const INPUT_ARC: &str = "l2-input";

/// Features of frames that go out by them.
pub const OUTPUT_ARC: &str = "l2-output";

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(L2::new(control)?);
    Ok(())
}
