//! An interface's name as an argument and in messages.

use shoal_buffer::SwIfIndex;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Expected, FromArg};

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

impl InterfaceArg {
    /// What a command names by its argument `interface` or, as a number, by `index`; `None` if by neither.
    ///
    /// # Errors
    ///
    /// There is no interface of that name.
    pub fn optional(args: &Args) -> Result<Option<SwIfIndex>, CliError> {
        match args.opt::<InterfaceArg>("interface")? {
            Some(InterfaceArg(index)) => Ok(Some(index)),
            None => Ok(args.opt::<u32>("index")?.map(SwIfIndex)),
        }
    }
}
