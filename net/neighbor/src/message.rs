//! What nodes tell the control plane, through bounded channels.

use shoal_adj::Link;
use shoal_buffer::{Buffer, SwIfIndex};

/// A packet that cannot be sent before its neighbour has answered. The first question is on its way already.
#[derive(Debug)]
pub struct Waiting<A> {
    /// The interface.
    pub interface: SwIfIndex,
    /// The neighbour.
    pub next_hop: A,
    /// The address it was asked with.
    pub source: A,
    /// What the packet is.
    pub link: Link,
    /// The packet, its front at the network header.
    pub buffer: Buffer,
}

/// Why a packet that waited is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum NotSent {
    /// No answer came.
    Silent = 0,
    /// Too many packets wait.
    Refused = 1,
    /// The interface went down or was deleted.
    Gone = 2,
}

impl NotSent {
    /// From what lies in a packet's scratch.
    pub fn from_number(n: u32) -> Self {
        match n {
            0 => NotSent::Silent,
            1 => NotSent::Refused,
            _ => NotSent::Gone,
        }
    }
}
