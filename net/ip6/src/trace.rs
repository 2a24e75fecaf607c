//! What `show trace` says of an IPv6 packet: its headers.

use std::fmt;

use shoal_buffer::Packet;

/// A copy of a packet's first bytes, printed when somebody looks.
pub struct Headers {
    bytes: [u8; 96],
    len: usize,
}

impl Headers {
    /// Copies them from a packet whose front is its IPv6 header.
    pub fn of(pkt: &Packet<'_>) -> Self {
        Self::behind(0, pkt)
    }

    /// Copies them from a packet with `skip` bytes of link layer in front.
    pub fn behind(skip: usize, pkt: &Packet<'_>) -> Self {
        let mut bytes = [0; 96];
        let len = pkt.copy_at(skip, &mut bytes);
        Headers { bytes, len }
    }
}

impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shoal_wire::describe_ip6(self.bytes.get(..self.len).unwrap_or_default()).fmt(f)
    }
}
