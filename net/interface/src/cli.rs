//! Commands.

use shoal_module::cli::{ArgType, Command};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[];
/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[];
