//! The nodes: one code for both directions.

mod check;

pub(crate) use check::Check;

/// The node of packets that an interface has received.
pub(crate) const RX: &str = "ip4-source-and-port-range-check-rx";
/// The node of packets that it is about to send.
pub(crate) const TX: &str = "ip4-source-and-port-range-check-tx";
