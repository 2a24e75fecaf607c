//! What forwarding of IPv4 and IPv6 has in common: nodes, arcs and tables that differ between the families in names only.
//!
//! [`IpFamily`] is the difference. The crates of the two families implement it, register the nodes of [`node`] under the
//! names it gives, and add what is really different: header checks, options, lookup, rewrite, fragmentation, delivery.
#![forbid(unsafe_code)]

mod arcs;
mod control;
mod counter;
mod family;
pub mod forward;
mod headers;
mod interface_set;
mod listeners;
pub mod node;
mod sources;
mod unreachables;

pub use arcs::{add_arcs, follow_enabled};
pub use control::{AddressError, Addresses, RouteChange, Routes, list, of_address, of_table};
pub use counter::received;
pub use family::{ArcNames, IpFamily, NodeNames, Unreachable};
pub use headers::Headers;
pub use interface_set::InterfaceSet;
pub use listeners::{ListenerTable, Listeners};
pub use sources::{Source, Sources};
pub use unreachables::Unreachables;
