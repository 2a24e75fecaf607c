//! Stateless translation of headers between IPv4 and IPv6 (RFC 7915).
//!
//! Nothing here knows of sessions, rules or nodes: [`read4`] and [`read6`] say what a packet is, [`to6`] and [`to4`] what its
//! headers become. The caller says which addresses and ports it gets.
//!
//! ```text
//! bytes --read4--> Seen --the caller maps addresses--> Ends --to6--> Head: bytes to take off, bytes to put on
//! ```
#![forbid(unsafe_code)]

mod error;
mod head;
mod icmp;
mod prefix;
mod read;
mod too_long;
mod transport;
mod with_ports;

pub use error::{error_to4, error_to6};
pub use head::{Head, HeaderFields, to4, to6};
pub use prefix::{LENGTHS, Prefix64};
pub use read::{Ends, Fault, Fragment, ParsedPacket, carried4, carried6, read4, read6};
pub use shoal_nat::{Kind, Sum};
pub use too_long::{LEAST_MTU, too_long4, too_long6};
pub use with_ports::WithPorts;

/// The protocol number of ICMPv6.
pub const ICMP6: u8 = 58;

#[cfg(test)]
mod tests;
