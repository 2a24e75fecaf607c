//! The control plane of IPv4 on interfaces: addresses, tables, and the routes that come with them.
//!
//! An address gives its table a connected network (a glean adjacency: the neighbour is the host that has the packet's
//! destination), a host route for the router itself, and drops for the network's first and last address (RFC 1812
//! 5.3.5), but for networks of one or two addresses (RFC 3021). The last address goes to everybody on the wire instead
//! where directed broadcasts are switched on, which RFC 2644 has off.
//!
//! When an interface goes down these routes stay, as VPP's do: its adjacencies say that it is down, so packets are
//! counted drops there and nothing is written per route. When an interface is deleted they go.

mod address;
mod data;
mod host;
mod rules;
mod unnumbered;

pub use address::{AddressEvent, Ip4};
pub use data::Ip4IfTable;
