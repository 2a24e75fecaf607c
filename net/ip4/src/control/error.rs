//! What can be wrong with an address.

use std::net::Ipv4Addr;

use shoal_fib::FibError;
use shoal_interface::InterfaceError;
use shoal_wire::Ip4Prefix;

/// Why an address operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ip4Error {
    /// The interface has the address already.
    #[error("{interface} has {address} already")]
    Duplicate {
        /// The interface.
        interface: String,
        /// The address.
        address: Ip4Prefix,
    },
    /// Another network of the table has some of the same addresses.
    #[error("{address} overlaps {other} of {interface} in table {table}")]
    Overlap {
        /// The address asked for.
        address: Ip4Prefix,
        /// The address that is there.
        other: Ip4Prefix,
        /// Who has it.
        interface: String,
        /// The table of both.
        table: u32,
    },
    /// The address is not that of one host; the nearest that is.
    #[error("{address} is not the address of a host: {why}{nearest}", nearest = near(*.nearest))]
    NotAHost {
        /// The address asked for.
        address: Ip4Prefix,
        /// What it is.
        why: &'static str,
        /// An address in the same network that could be.
        nearest: Option<Ip4Prefix>,
    },
    /// The interface does not have the address; what it has that is nearest.
    #[error("{interface} does not have {address}{nearest}", nearest = near(*.nearest))]
    NoAddress {
        /// The interface.
        interface: String,
        /// The address asked for.
        address: Ip4Prefix,
        /// The one it has that is nearest.
        nearest: Option<Ip4Prefix>,
    },
    /// The table of an interface cannot be changed while it has addresses.
    #[error("{interface} has addresses in table {table}, remove them first: {addresses}")]
    HasAddresses {
        /// The interface.
        interface: String,
        /// Its table's id.
        table: u32,
        /// Its addresses.
        addresses: String,
    },
    /// An interface cannot borrow from another.
    #[error("{interface} cannot use the addresses of {lender}: {why}")]
    Unnumbered {
        /// The interface that would borrow.
        interface: String,
        /// The one that would lend.
        lender: String,
        /// Why not.
        why: String,
    },
    /// The interface borrows its addresses and can have none of its own.
    #[error("{0} is unnumbered and uses the addresses of {1}: `set interface unnumbered del {0}' first")]
    IsUnnumbered(String, String),
    /// The interface does not borrow.
    #[error("{0} is not unnumbered")]
    NotUnnumbered(String),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The table packets read cannot be written now.
    #[error("interface addresses: {0}")]
    Table(String),
}

fn near(nearest: Option<Ip4Prefix>) -> String {
    nearest.map_or_else(String::new, |p| format!(", nearest {p}"))
}

/// The address among `there` with the fewest other addresses between it and `wanted`.
pub(super) fn nearest(wanted: Ipv4Addr, there: &[Ip4Prefix]) -> Option<Ip4Prefix> {
    there.iter().copied().min_by_key(|p| p.addr().to_bits().abs_diff(wanted.to_bits()))
}
