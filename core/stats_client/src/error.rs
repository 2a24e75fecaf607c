//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// The counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no socket, or no router serves it any more.
    #[error("{}: no router serves this socket: {source}", path.display())]
    Gone {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The server of the socket does not speak this protocol, or not soon enough.
    #[error("{}: no stats segment came: {reason}", path.display())]
    Handshake {
        /// The socket.
        path: PathBuf,
        /// What came instead.
        reason: String,
    },
    /// The segment has another version.
    #[error("the stats segment has version {0}, not 2")]
    Version(u64),
    /// The segment's owner changes it all the time, or died while it did.
    #[error("the stats segment keeps changing")]
    Busy,
    /// The segment contradicts itself.
    #[error("the stats segment is damaged: {0}")]
    Malformed(&'static str),
    /// The segment has, or claims to have, more than a reader should copy.
    #[error("the stats segment has more than {} words to read", crate::MOST_WORDS)]
    TooLarge,
    /// The system refused.
    #[error("the stats segment cannot be read: {0}")]
    System(#[from] io::Error),
}
