//! What `show trace` says of an IPv4 packet: its headers.

use std::fmt;

use shoal_buffer::Packet;

/// A copy of a packet's first bytes, printed when somebody looks.
pub struct Headers {
    bytes: [u8; 64],
    len: usize,
}

impl Headers {
    /// Copies them.
    pub fn of(pkt: &Packet<'_>) -> Self {
        let mut bytes = [0; 64];
        let len = pkt.copy_to(&mut bytes);
        Headers { bytes, len }
    }
}

impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shoal_wire::describe_ip4(self.bytes.get(..self.len).unwrap_or_default()).fmt(f)
    }
}
