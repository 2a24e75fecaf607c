//! A forwarder that a routing daemon gives its routes, and a peer that announces them: what convergence is measured on.
//!
//! ```text
//! namespace ...a            namespace ...d                     namespace ...b
//!   tester  ==== veth ====  left   forwarder   right  ==== veth ====  first    peer and tester
//!                                              spare  ==== veth ====  second   another link to the same peer
//!                           namespace ...l: images of the ports, the daemon (with Linux as forwarder it is in ...d)
//! ```
//!
//! Nothing is pinned: peer, daemon and forwarder share all processors, as they would on a small router.

mod bed;
mod config;
mod words;

pub use bed::{LINKS, LinkFailure, PeerLink, RoutingBed, Spent};
pub use words::{Daemon, Forwarder};
