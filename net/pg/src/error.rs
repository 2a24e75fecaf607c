//! What can be wrong with a packet-generator operation.

use std::path::PathBuf;

use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_message::Retval;

/// Why a packet-generator operation failed; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// No packet-generator interface of this name or number.
    #[error("no packet-generator interface `{0}'{near}", near = .1.as_ref().map(|n| format!(", did you mean `{n}'?")).unwrap_or_default())]
    NoInterface(String, Option<String>),
    /// A description cannot be read.
    #[error("after {near}: expected {expected}")]
    Syntax {
        /// The last words that were read.
        near: String,
        /// What should have stood there.
        expected: String,
    },
    /// No stream of this name; the nearest there is.
    #[error("no stream `{0}'{near}", near = .1.as_ref().map(|n| format!(", did you mean `{n}'?")).unwrap_or_default())]
    NoStream(String, Option<String>),
    /// A stream's description does not fit together.
    #[error("stream `{0}': {1}")]
    Stream(String, String),
    /// A capture file cannot be replayed.
    #[error("{path}: {1}", path = .0.display())]
    Replay(PathBuf, String),
    /// A capture is running already.
    #[error("{0}: a capture into {path} is running, disable it first", path = .1.display())]
    CaptureRuns(String, PathBuf),
    /// The capture file is there already.
    #[error("{path}: file exists, a capture never overwrites one", path = .0.display())]
    FileExists(PathBuf),
    /// Interfaces refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl From<PgError> for Retval {
    fn from(error: PgError) -> Self {
        match error {
            PgError::NoInterface(..) => Retval::INVALID_SW_IF_INDEX,
            PgError::Syntax { .. } | PgError::Stream(..) | PgError::Replay(..) => Retval::INVALID_VALUE,
            PgError::NoStream(..) => Retval::NO_SUCH_ENTRY,
            PgError::CaptureRuns(..) => Retval::RSRC_IN_USE,
            PgError::FileExists(_) => Retval::CANNOT_CREATE_PCAP_FILE,
            PgError::Interface(error) => error.into(),
            PgError::Graph(_) => Retval::UNSPECIFIED,
        }
    }
}
