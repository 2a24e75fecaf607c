//! What can be wrong with a reassembly operation.

use shoal_graph::GraphError;
use shoal_interface::InterfaceError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReassemblyError {
    /// A value is out of range; the nearest that is not.
    #[error("{what} {value} is not possible: {least} to {most}, nearest {nearest}", nearest = (*.value).clamp(*.least, *.most))]
    Range {
        /// What was to be set.
        what: &'static str,
        /// The value.
        value: u32,
        /// Smallest possible.
        least: u32,
        /// Largest possible.
        most: u32,
    },
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl ReassemblyError {
    /// The nearest value that is possible.
    pub fn nearest(&self) -> Option<u32> {
        match self {
            ReassemblyError::Range { value, least, most, .. } => Some(*(value.clamp(least, most))),
            _ => None,
        }
    }
}
