//! What can be wrong with a capture.

use std::io;
use std::path::PathBuf;

use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_message::Retval;

/// Why a capture was not begun or ended as asked.
#[derive(Debug, thiserror::Error)]
pub enum PcapTraceError {
    /// One runs already.
    #[error("dispatch trace already enabled...")]
    Runs,
    /// None runs.
    #[error("dispatch trace already disabled...")]
    Idle,
    /// It ended, and there is nothing to write.
    #[error("No packets captured...")]
    Nothing,
    /// Neither rx, tx nor drop.
    #[error("nothing to capture: rx, tx, drop, or some of them")]
    NoSide,
    /// A file somewhere else.
    #[error("file `{0}': a name without `/' or `..'; it will be in /tmp")]
    FileName(String),
    /// A number out of its range.
    #[error("{what} {value} is not possible: {least} to {most}")]
    Range {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The least that is possible.
        least: usize,
        /// The most that is possible.
        most: usize,
    },
    /// No such reason for a drop.
    #[error("no reason `{0}': NODE.REASON, as `show errors' has them")]
    NoReason(String),
    /// The file cannot be written.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Interfaces refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

impl From<PcapTraceError> for Retval {
    fn from(error: PcapTraceError) -> Self {
        match error {
            PcapTraceError::Runs | PcapTraceError::Range { .. } => Retval::INVALID_VALUE,
            PcapTraceError::Idle => Retval::VALUE_EXIST,
            PcapTraceError::Nothing => Retval::NO_SUCH_ENTRY,
            PcapTraceError::NoSide | PcapTraceError::FileName(_) | PcapTraceError::NoReason(_) => {
                Retval::INVALID_VALUE
            }
            PcapTraceError::Graph(_) => Retval::UNSPECIFIED,
            PcapTraceError::File { .. } => Retval::SYSCALL_ERROR_1,
            PcapTraceError::Interface(error) => error.into(),
        }
    }
}
