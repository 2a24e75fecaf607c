//! What nodes tell the control plane, through bounded channels.

use std::net::Ipv4Addr;

use shoal_buffer::{Buffer, SwIfIndex};
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

/// A packet that cannot be sent before its neighbour has answered. The first request is on its way already.
#[derive(Debug)]
pub struct Waiting {
    /// The link.
    pub interface: SwIfIndex,
    /// The neighbour.
    pub next_hop: Ipv4Addr,
    /// The address it was asked with.
    pub source: Ipv4Addr,
    /// The packet, its front at the IPv4 header.
    pub buffer: Buffer,
}

/// Why a packet that waited is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum NotSent {
    /// Nobody answered.
    Silent = 0,
    /// Too many packets wait.
    Refused = 1,
    /// The interface went down or was deleted.
    Gone = 2,
}

impl NotSent {
    /// From what lies in a packet's scratch.
    pub(crate) fn from_number(n: u32) -> Self {
        match n {
            0 => NotSent::Silent,
            1 => NotSent::Refused,
            _ => NotSent::Gone,
        }
    }
}
