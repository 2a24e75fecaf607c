//! Why an operation failed.

use shoal_adj::{AdjError, Family};
use shoal_fib::FibError;
use shoal_interface::InterfaceError;
use shoal_module::Missing;

use crate::Prefix;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MfibError {
    /// The address is no group's.
    #[error("{0} is not a multicast group; groups are 224.0.0.0/4 and ff00::/8")]
    NotAGroup(String),
    /// The source is not one host's.
    #[error("{0} is not the address of one host")]
    NotASource(String),
    /// Source and group are of two families.
    #[error("source {source_address} and group {group} are of different families")]
    Families {
        /// The source.
        source_address: String,
        /// The group.
        group: String,
    },
    /// A source needs one group.
    #[error("an entry for a source is for one group, {0} is a prefix")]
    SourceAndPrefix(String),
    /// Packets to groups of the link go nowhere.
    #[error("packets to {0} never leave their link, so they are not forwarded")]
    LinkGroup(String),
    /// This router is no interface packets come from.
    #[error("`local' takes `Forward' only: packets of this router need no accepting interface")]
    LocalAccepts,
    /// The interface has no flags.
    #[error("an interface needs `Accept', `Forward' or `Negate-Signal'")]
    NoFlags,
    /// The entry has no flags.
    #[error("an entry needs a `via' or a flag of its own: `Signal', `Drop', `Connected', `Accept-all-itf'")]
    Nothing,
    /// There is no such entry.
    #[error("no multicast route {prefix}{}", nearest.as_ref().map(|n| format!(", nearest is {n}")).unwrap_or_default())]
    NoEntry {
        /// What was asked for.
        prefix: Prefix,
        /// One that is there.
        nearest: Option<Prefix>,
    },
    /// The entry has no such interface, or not with these flags.
    #[error("{prefix} has no such interface: {what}")]
    NoPath {
        /// The entry.
        prefix: Prefix,
        /// What was asked for.
        what: String,
    },
    /// The table is full.
    #[error("multicast table of {family} is full, {most} entries")]
    Full {
        /// The family.
        family: Family,
        /// Its capacity.
        most: usize,
    },
    /// The entry is full.
    #[error("{prefix} has {most} interfaces, more do not fit")]
    TooManyInterfaces {
        /// The entry.
        prefix: Prefix,
        /// Most interfaces.
        most: usize,
    },
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The adjacency table refused.
    #[error(transparent)]
    Adj(#[from] AdjError),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A part is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
}
