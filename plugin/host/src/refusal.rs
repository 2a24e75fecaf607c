//! Why a library is no plugin of this router.

use shoal_graph::GraphError;
use shoal_plugin_abi::{SHOAL_ABI_MAJOR, SHOAL_ABI_MINOR, SYMBOL};

/// Why a library was refused; the file stands in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The system does not load it.
    #[error("cannot be loaded, expected a shared library of this machine: {0}")]
    Open(String),
    /// It does not export the one function.
    #[error("exports no function `{SYMBOL}', expected a plugin of ABI {SHOAL_ABI_MAJOR}")]
    NoSymbol,
    /// The ABI it was built for.
    #[error(
        "was built for plugin ABI {0}.{1}, expected {SHOAL_ABI_MAJOR}.0 to {SHOAL_ABI_MAJOR}.{SHOAL_ABI_MINOR}"
    )]
    Abi(u16, u16),
    /// A structure with another size than the ABI's.
    #[error("{what} says it has {found} bytes, expected {expected}")]
    Size {
        /// Which structure.
        what: String,
        /// What it says.
        found: u32,
        /// What the ABI says.
        expected: usize,
    },
    /// A null pointer.
    #[error("{0} is null, expected {1}")]
    Missing(String, &'static str),
    /// A text that is none, or has signs it may not have.
    #[error("{what} is not what it may be, expected {expected}")]
    Text {
        /// Which text.
        what: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A number that is too large.
    #[error("{what}: {found}, expected at most {most}")]
    TooMany {
        /// Of what.
        what: String,
        /// How many there are.
        found: u32,
        /// How many there may be.
        most: u32,
    },
    /// A name that is taken.
    #[error("{0} `{1}' exists already, expected a name of its own")]
    Exists(&'static str, String),
    /// A node that is not there.
    #[error("{of} names node `{name}', expected a node of {there}")]
    NoNode {
        /// Who names it.
        of: String,
        /// The name.
        name: String,
        /// Where it should be.
        there: &'static str,
    },
    /// An arc that is not there, or constraints that cannot be satisfied.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Its init function did not succeed.
    #[error("its init function returned {0}, expected 0")]
    Init(i32),
}
