//! An interface's name as an argument and in messages.

use shoal_buffer::SwIfIndex;
use shoal_module::Control;
use shoal_module::cli::{Expected, FromArg};

use crate::Interfaces;

/// An interface given by name (or by number, as VPP's API users do).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceArg(pub SwIfIndex);

impl FromArg for InterfaceArg {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let interfaces = control.get::<Interfaces>().map_err(|e| Expected::new(e.to_string()))?;
        interfaces
            .by_name(text)
            .map(InterfaceArg)
            .ok_or_else(|| Expected::new("the name of an interface").nearest(interfaces.nearest_name(text)))
    }
}
