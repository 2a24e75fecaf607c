//! Layer 2: interfaces that are bridged or cross-connected, and the features of their packets.
//!
//! [`L2`] is the control plane: the [`Mode`] of each interface, what it does to tags ([`TagRewrite`]), and which features
//! it has ([`Bitmap`]). Nodes read [`L2Data`] by interface, and find the next feature of a packet with [`Path`].
#![forbid(unsafe_code)]

mod api;
mod bitmap;
mod cli;
mod control;
mod interface_info;
mod lines;
pub mod node;
mod patch;
mod pbb;
mod rewrite;
mod running;
mod table;

use std::rc::Rc;
use std::sync::Arc;

use shoal_interface::Interfaces;
use shoal_module::{Control, InitError, Module};

pub use bitmap::{Bitmap, Input, Output, Place};
pub use cli::lines_of_tags;
pub use control::{L2, L2Error, Mode, Port, PortGuard, Role};
pub use node::bridged::{BridgedInput, BridgedOutput};
pub use node::input::{L2Input, Next as InputNext};
pub use node::output::{L2Output, Next as OutputNext, is_unbound};
pub use node::vtr::InputRewrite;
pub use patch::Patches;
pub use pbb::{PbbOp, PbbRewrite, ServiceId};
pub use rewrite::{Rewrite, TagOp, TagRewrite};
pub use table::{L2Data, Path};

/// The module.
pub static MODULE: Module = Module {
    name: "l2",
    description: "Layer 2: cross-connects, tags, and what bridges are made of",
    init,
    commands: cli::COMMANDS,
    features: &["l2-patch"],
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Features of frames that come in by interfaces in layer 2.
pub const INPUT_ARC: &str = "l2-input";

/// Features of frames that go out by them.
pub const OUTPUT_ARC: &str = "l2-output";

/// The nodes that are part of chains.
pub struct L2Nodes {
    /// `l2-input`.
    pub input: Arc<L2Input<false>>,
    /// `l2-input-vtr`.
    pub rewrite: Arc<InputRewrite>,
    /// `l2-output`.
    pub output: Arc<L2Output<false>>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (l2, nodes) = L2::new(control)?;
    interface_info::tell(&*control.get::<Interfaces>()?, &l2);
    control.put_rc(l2);
    control.put(nodes);
    control.put_rc(Patches::new(control)?);
    Ok(())
}
