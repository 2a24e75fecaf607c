//! What the packets of a stream look like: layers, fields that change, and how both become bytes.
//!
//! [`parse`] reads VPP's `data { ... }` into a [`Blueprint`]; a blueprint renders packets of any size; a
//! [`Template`] is one rendered packet with the fields that change from packet to packet.

mod blueprint;
mod operand;
mod parse;
mod template;

pub use blueprint::Blueprint;
pub(crate) use blueprint::{Layer, Offload};
pub(crate) use parse::parse;
pub use template::{Field, Order};
pub(crate) use template::{Random, Template};
