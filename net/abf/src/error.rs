//! Why a policy was refused.

use shoal_adj::Family;
use shoal_fib::FibError;
use shoal_interface::InterfaceError;
use shoal_rule::Rule;

/// Why a policy was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbfError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The paths cannot be.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// No policy of this number; the nearest there is.
    #[error("no policy {id}{}", nearest.map(|n| format!(", nearest {n}")).unwrap_or_default())]
    NoPolicy {
        /// The number asked for.
        id: u32,
        /// The nearest there is.
        nearest: Option<u32>,
    },
    /// The policy has another rule.
    #[error("policy {id} has the rule `{rule}' already; delete it first")]
    OtherRule {
        /// Its number.
        id: u32,
        /// Its rule.
        rule: Box<Rule>,
    },
    /// The policy has none of these paths.
    #[error("policy {id} has no such path, but {count} others")]
    NoPath {
        /// Its number.
        id: u32,
        /// How many it has.
        count: usize,
    },
    /// The policy is attached.
    #[error("policy {id} is attached to {interface}; detach it first")]
    Attached {
        /// Its number.
        id: u32,
        /// An interface it is attached to.
        interface: String,
    },
    /// The policy is attached there already.
    #[error("policy {id} is attached to {interface} already, with priority {priority}")]
    Already {
        /// Its number.
        id: u32,
        /// The interface.
        interface: String,
        /// With which priority.
        priority: u32,
    },
    /// The policy is not attached there.
    #[error("policy {id} is not attached to {interface}")]
    NotAttached {
        /// Its number.
        id: u32,
        /// The interface.
        interface: String,
    },
    /// The policy is for packets of the other family.
    #[error("policy {id} is for packets of {family}")]
    Family {
        /// Its number.
        id: u32,
        /// Its family.
        family: Family,
    },
    /// There are as many as there can be.
    #[error("{0} are all there can be")]
    TooMany(&'static str),
}
