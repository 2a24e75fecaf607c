//! The control plane of IPv6 on interfaces: addresses, tables, and the routes that come with them.
//!
//! IPv6 runs on an interface when it was told to or has an address. It then has a link-local address (RFC 4291, 2.5.6),
//! made of its MAC unless the operator chose one, and is in the groups a router must be in (RFC 4291, 2.8); what means
//! something on one link only is in [`Ip6LinkTable`], by interface.
//!
//! An address gives its table a connected network (a glean adjacency: the neighbour is the host that has the packet's
//! destination), a host route for the router itself, and one for the network's subnet-router anycast address (RFC 4291,
//! 2.6.1), but for networks of one or two addresses (RFC 6164).
//!
//! When an interface goes down these routes stay, as VPP's do. When it is deleted they go.

mod address;
mod data;
mod host;
mod info;
mod links;
mod rules;
mod standing;
mod tables;
mod unnumbered;

pub use address::{AddressEvent, Ip6};
pub use data::{Ip6IfTable, Ip6LinkTable};
pub use info::Ip6Info;
pub use standing::Use;
