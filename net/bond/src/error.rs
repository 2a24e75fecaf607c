//! Why something cannot be done.

use shoal_interface::InterfaceError;

/// Why a bond or a member cannot be; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BondError {
    /// The interface is no bond.
    #[error("bond interface not found: {0} is none")]
    NotBond(String),
    /// Another bond has the number.
    #[error("{0} exists already")]
    Exists(String),
    /// The number does not fit.
    #[error("{0} is no number of a bond: 0 to {1} are")]
    Number(u32, u32),
    /// Only Ethernet interfaces with a device of their own can be members.
    #[error("{0} cannot be a member of a bond: it {1}")]
    Unfit(String, &'static str),
    /// It is a member.
    #[error("interface was already added as member: {0} is one of {1}")]
    IsMember(String, String),
    /// It is none.
    #[error("interface was not a member: {0}")]
    NotMember(String),
    /// Weights choose the member of mode `active-backup`.
    #[error("{0} is in mode {1}: only members of mode active-backup have weights")]
    NoWeights(String, &'static str),
    /// The address cannot be a station's.
    #[error("{0} is not the address of one station")]
    Mac(String),
    /// The table cannot be written.
    #[error("table of members: {0}")]
    Table(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}
