//! The data plane.

mod input;
mod routers;

pub(crate) use input::{Fact, IgmpInput, NAME, wanted};
pub(crate) use routers::Routers;
