//! What can be wrong with what is punted.

use std::path::PathBuf;

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
    /// The start-up file names no socket.
    #[error("socket is not configured: `punt {{ socket PATH }}' in the start-up file")]
    NotConfigured,
    /// The router's socket is open.
    #[error("the punt socket is {path} already", path = .0.display())]
    Open(PathBuf),
    /// The system refused the router's socket.
    #[error("punt socket: {0}")]
    Socket(String),
    /// This is no path of a client's socket.
    #[error("Punt socket: Invalid client path: {path}: {rule}", path = .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        rule: &'static str,
    },
    /// Sockets take ports of UDP.
    #[error("only UDP protocol (17) is supported, got {0}")]
    NotUdp(u8),
    /// All ports at once are not for sockets.
    #[error("UDP port number required")]
    NoPort,
    /// The client speaks of another form of descriptors.
    #[error("Invalid packet descriptor version {0}: nearest 1")]
    Version(u32),
    /// There is no such reason.
    #[error("no punt reason {id}: there are {known}")]
    NoReason {
        /// The number.
        id: u32,
        /// How many there are.
        known: usize,
    },
    /// Packets of the reason are somebody else's.
    #[error("packets punted for {name} are taken by {by}")]
    ReasonTaken {
        /// The reason.
        name: &'static str,
        /// Who takes them.
        by: &'static str,
    },
    /// There is no room for another reason.
    #[error("{0} reasons are all there can be")]
    TooManyReasons(usize),
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
