//! The data plane.

mod input;

pub(crate) use input::{Fact, IgmpInput, NAME, wanted};
