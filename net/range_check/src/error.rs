//! What can be wrong with a range or an interface's tables.

use shoal_fib::FibError;
use shoal_interface::InterfaceError;
use shoal_wire::Ip4Prefix;

use crate::PortRange;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Table 0 is the one packets are forwarded by.
    #[error("table 0 is for forwarding: nearest 1")]
    DefaultTable,
    /// The ends of a range are in the wrong order, or begin with 0.
    #[error("{0} is no range of ports: from 1 to 65535, the lower first")]
    Range(PortRange),
    /// No range is given.
    #[error("a range of ports is missing")]
    NoRange,
    /// It is not there.
    #[error("{prefix} has no ports {range} in table {table}")]
    NotThere {
        /// The prefix.
        prefix: Ip4Prefix,
        /// The range.
        range: PortRange,
        /// The table's number.
        table: u32,
    },
    /// A prefix has as many ranges as it can.
    #[error("a prefix has {0} ranges of ports at most")]
    TooMany(usize),
    /// No table was named.
    #[error("a table of TCP or UDP is missing")]
    NoTables,
    /// Packets of the interface are not checked.
    #[error("packets of {0} are not checked")]
    NotChecked(String),
    /// The table.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}
