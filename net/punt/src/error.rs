//! What can be wrong with what is punted.

use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PuntError {
    /// Somebody else has the port or protocol.
    #[error("{what} of {family} is this router's own already")]
    Taken {
        /// Which.
        what: String,
        /// Whose packets.
        family: &'static str,
    },
    /// It is not punted.
    #[error("{what} of {family} is not punted")]
    NotPunted {
        /// Which.
        what: String,
        /// Whose packets.
        family: &'static str,
    },
    /// Ports of TCP are not looked at.
    #[error("TCP is punted as a whole, not by port ({0}): nearest `all'")]
    TcpPort(u16),
    /// This one is never the host's alone.
    #[error("protocol {0} is this router's own: UDP and TCP have words of their own, ICMP is answered here")]
    Protocol(u8),
    /// Nothing is redirected.
    #[error("nothing received by {rx} is redirected")]
    NotRedirected {
        /// By which interface.
        rx: String,
    },
    /// A bucket that holds nothing lets nothing through.
    #[error("a rate or burst of 0 would punt nothing: at least 1")]
    NoRate,
    /// The way was refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface was.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
