//! What can be wrong with an interface operation.

use shoal_buffer::SwIfIndex;
use shoal_graph::GraphError;
use shoal_message::Retval;
use shoal_wire::MacAddress;

/// Why an interface operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceError {
    /// No interface of this name; the nearest there is.
    #[error("no interface `{0}'{near}", near = .1.as_ref().map(|n| format!(", did you mean `{n}'?")).unwrap_or_default())]
    NoName(String, Option<String>),
    /// No interface of this index.
    #[error("no interface with sw_if_index {0}")]
    NoIndex(SwIfIndex),
    /// The name is taken.
    #[error("interface `{0}' exists already")]
    Exists(String),
    /// The value is out of range; the nearest that is not.
    #[error("{what} {value} is not possible on {interface}: {least} to {most}, nearest {nearest}", nearest = (*.value).clamp(*.least, *.most))]
    Range {
        /// What was to be set.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The value.
        value: u32,
        /// Smallest possible.
        least: u32,
        /// Largest possible.
        most: u32,
    },
    /// IP needs to know which tags to send.
    #[error("sub-interface without exact-match doesn't support IP addressing: create {0} with exact-match")]
    NotExact(String),
    /// A sub-interface goes up after its port.
    #[error("super-interface {0} must be up")]
    PortDown(String),
    /// Its kind cannot do that.
    #[error("{0}: {1}")]
    NotPossible(String, String),
    /// It takes no frames for such a MAC address.
    #[error("{1} takes no frames for {0}")]
    NoMac(MacAddress, String),
    /// The interface has no such queue; how many it has.
    #[error("{0} has no receive queue {1}: it has {2}")]
    NoQueue(String, u32, usize),
    /// The interface has no such transmit queue; how many it has.
    #[error("{0} has no transmit queue {1}: it has {2}")]
    NoTxQueue(String, u32, usize),
    /// No thread of this number; the highest there is.
    #[error("no thread {0}: there are 0 to {1}")]
    NoThread(usize, usize),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The table of interfaces cannot be written now or is full.
    #[error("interface table: {0}")]
    Table(String),
}

impl From<InterfaceError> for Retval {
    fn from(error: InterfaceError) -> Self {
        match error {
            InterfaceError::NoName(..) | InterfaceError::NoIndex(_) => Retval::INVALID_SW_IF_INDEX,
            InterfaceError::Exists(_) => Retval::IF_ALREADY_EXISTS,
            InterfaceError::Range { .. } => Retval::INVALID_VALUE,
            InterfaceError::NotPossible(..) => Retval::UNIMPLEMENTED,
            InterfaceError::NoMac(..) => Retval::NO_SUCH_ENTRY,
            InterfaceError::NotExact(_) => Retval::UNSUPPORTED,
            InterfaceError::NoQueue(..) | InterfaceError::NoTxQueue(..) => Retval::INVALID_QUEUE,
            InterfaceError::NoThread(..) => Retval::INVALID_WORKER,
            InterfaceError::PortDown(_) | InterfaceError::Graph(_) | InterfaceError::Table(_) => {
                Retval::UNSPECIFIED
            }
        }
    }
}
