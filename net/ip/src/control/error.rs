//! What can be wrong with an address.

use std::net::Ipv6Addr;

use shoal_adj::AdjError;
use shoal_fib::{FibError, HostAddress};
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_message::Retval;
use shoal_module::cli::CliError;
use shoal_wire::IpPrefix;

/// Why an address operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The interface has the address already.
    #[error("{interface} has {address} already")]
    Duplicate {
        /// The interface.
        interface: String,
        /// The address.
        address: IpPrefix,
    },
    /// Another network of the table has some of the same addresses.
    #[error("{address} overlaps {other} of {interface} in table {table}")]
    Overlap {
        /// The address asked for.
        address: IpPrefix,
        /// The address that is there.
        other: IpPrefix,
        /// The interface that has it.
        interface: String,
        /// The table of both.
        table: u32,
    },
    /// The address is not that of one host; the nearest that is.
    #[error("{address} is not the address of a host: {why}{nearest}", nearest = near(*.nearest))]
    NotAHost {
        /// The address asked for.
        address: IpPrefix,
        /// What it is.
        why: &'static str,
        /// An address in the same network that could be.
        nearest: Option<IpPrefix>,
    },
    /// The address is not a link-local one of one host.
    #[error("{0} is no link-local address of a host, such as fe80::1")]
    NotLinkLocal(Ipv6Addr),
    /// The interface does not have the address; what it has that is nearest.
    #[error("{interface} does not have {address}{nearest}", nearest = near(*.nearest))]
    NoAddress {
        /// The interface.
        interface: String,
        /// The address asked for.
        address: IpPrefix,
        /// The one it has that is nearest.
        nearest: Option<IpPrefix>,
    },
    /// IPv6 stays while the interface has addresses.
    #[error("{interface} has addresses, remove them first: {addresses}")]
    InUse {
        /// The interface.
        interface: String,
        /// Its addresses.
        addresses: String,
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
    /// IPv6 does not run on the interface.
    #[error("ip6 is not enabled on {0}")]
    NotEnabled(String),
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
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The adjacency table refused.
    #[error(transparent)]
    Adj(#[from] AdjError),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The table packets read cannot be written now.
    #[error("interface addresses: {0}")]
    Table(String),
}

fn near(nearest: Option<IpPrefix>) -> String {
    nearest.map_or_else(String::new, |p| format!(", nearest {p}"))
}

/// The address among `there` with the fewest other addresses between it and `wanted`.
pub(super) fn nearest<P: Copy + Into<HostAddress>>(wanted: P, there: &[P]) -> Option<P> {
    let bits = |prefix: P| -> u128 { prefix.into().bits };
    there.iter().copied().min_by_key(|p| bits(*p).abs_diff(bits(wanted)))
}

/// Addresses as an operator reads them.
pub fn list<P: ToString>(addresses: &[P]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// VPP's number for what is wrong with an operation on an interface.
impl From<AddressError> for Retval {
    fn from(error: AddressError) -> Self {
        match error {
            AddressError::Duplicate { .. } => Retval::DUPLICATE_IF_ADDRESS,
            AddressError::Overlap { .. } => Retval::ADDRESS_IN_USE,
            AddressError::NotAHost { .. } | AddressError::NotLinkLocal(_) => Retval::INVALID_VALUE,
            AddressError::NoAddress { .. } => Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE,
            AddressError::InUse { .. } | AddressError::HasAddresses { .. } => {
                Retval::ADDRESS_FOUND_FOR_INTERFACE
            }
            AddressError::NotEnabled(_) => Retval::IP6_NOT_ENABLED,
            AddressError::Unnumbered { .. } => Retval::UNEXPECTED_INTF_STATE,
            AddressError::Fib(e) => shoal_fib::api::retval(&e),
            AddressError::Interface(e) => e.into(),
            AddressError::Adj(_) | AddressError::Graph(_) | AddressError::Table(_) => Retval::UNSPECIFIED,
        }
    }
}

/// Points at the argument `address` for whatever is wrong with it.
pub fn of_address(error: AddressError) -> CliError {
    let nearest = match &error {
        AddressError::NotAHost { nearest, .. } | AddressError::NoAddress { nearest, .. } => {
            nearest.map(|n| n.to_string())
        }
        AddressError::NotLinkLocal(_) | AddressError::Duplicate { .. } | AddressError::Overlap { .. } => None,
        _ => return error.into(),
    };
    CliError::argument("address", error.to_string()).nearest(nearest)
}

/// Points at the argument `table` or `interface` for what is wrong with a table.
pub fn of_table(error: AddressError) -> CliError {
    match error {
        AddressError::Fib(e) => CliError::argument("table", e.to_string()),
        AddressError::HasAddresses { .. } => CliError::argument("interface", error.to_string()),
        error => error.into(),
    }
}
