//! What nodes tell the control plane, through bounded channels.

use std::net::Ipv4Addr;

use shoal_buffer::SwIfIndex;
use shoal_wire::MacAddress;

/// Whether a station that was not known yet is to be entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// It talks to us.
    Enter,
    /// It only announces itself to everybody.
    Ignore,
}

/// A station said which address it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learn {
    /// The link.
    pub interface: SwIfIndex,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its link-layer address.
    pub mac: MacAddress,
    /// Whether it matters if it was not known.
    pub unknown: Unknown,
}
