//! What can be wrong with a packet-generator operation.

use std::path::PathBuf;

use shoal_graph::GraphError;
use shoal_interface::InterfaceError;

/// Why a packet-generator operation failed; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// No packet-generator interface of this name or number.
    #[error("no packet-generator interface `{0}'{near}", near = .1.as_ref().map(|n| format!(", did you mean `{n}'?")).unwrap_or_default())]
    NoInterface(String, Option<String>),
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
