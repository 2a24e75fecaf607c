//! What can be wrong with an address.

use std::net::Ipv6Addr;

use shoal_adj::AdjError;
use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_wire::Ip6Prefix;

/// Why an address operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ip6Error {
    /// The interface has the address already.
    #[error("{interface} has {address} already")]
    Duplicate {
        /// The interface.
        interface: String,
        /// The address.
        address: Ip6Prefix,
    },
    /// Another network of the table has some of the same addresses.
    #[error("{address} overlaps {other} of {interface} in table {table}")]
    Overlap {
        /// The address asked for.
        address: Ip6Prefix,
        /// The address that is there.
        other: Ip6Prefix,
        /// Who has it.
        interface: String,
        /// The table of both.
        table: u32,
    },
    /// The address is not that of one host.
    #[error("{address} is not the address of a host: {why}")]
    NotAHost {
        /// The address asked for.
        address: Ip6Prefix,
        /// What it is.
        why: &'static str,
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
        address: Ip6Prefix,
        /// The one it has that is nearest.
        nearest: Option<Ip6Prefix>,
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
    /// The interface borrows its addresses and can have none of its own.
    #[error("{0} is unnumbered and uses the addresses of {1}: `set interface unnumbered del {0}' first")]
    IsUnnumbered(String, String),
    /// The interface does not borrow.
    #[error("{0} is not unnumbered")]
    NotUnnumbered(String),
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

fn near(nearest: Option<Ip6Prefix>) -> String {
    nearest.map_or_else(String::new, |p| format!(", nearest {p}"))
}

/// The address among `there` with the fewest other addresses between it and `wanted`.
pub(super) fn nearest(wanted: Ipv6Addr, there: &[Ip6Prefix]) -> Option<Ip6Prefix> {
    there.iter().copied().min_by_key(|p| p.addr().to_bits().abs_diff(wanted.to_bits()))
}

/// RFC 4291, 2.5 and 2.7: what may be the address of a host.
pub(super) fn check_host(address: Ip6Prefix) -> Result<(), Ip6Error> {
    let addr = address.addr();
    let why = if addr.is_unspecified() {
        "it is nobody's"
    } else if address.len() == 0 {
        "its network would be everything"
    } else if addr.is_multicast() {
        "it is a group's"
    } else if addr.is_loopback() {
        "it is the loopback address"
    } else {
        return Ok(());
    };
    Err(Ip6Error::NotAHost { address, why })
}
