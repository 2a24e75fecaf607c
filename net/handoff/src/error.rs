//! What can be wrong with spreading an interface's packets.

use shoal_interface::InterfaceError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandoffError {
    /// The interface is not there, or the feature is not.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A worker that is not there.
    #[error("no worker {wanted}, there are: {there}")]
    NoWorker {
        /// The worker that was asked for.
        wanted: u32,
        /// Those that are there.
        there: String,
        /// The one that is there and nearest to it.
        nearest: u32,
    },
    /// There is only the main thread.
    #[error("there are no workers, only the main thread: `create worker' starts one")]
    NoWorkers,
    /// Nothing to spread over.
    #[error("no worker was named: a list is such as 0-2,5")]
    Empty,
    /// The two directions of a flow have labels of their own.
    #[error(
        "`symmetrical' and `flow-label' exclude each other: each direction of a flow has a label of its own"
    )]
    SymmetricLabel,
    /// The table that packets read cannot be written.
    #[error("handoff table: {0}")]
    Table(String),
}
