//! What `show trace` says of a packet: its headers.

use std::fmt;
use std::marker::PhantomData;

use shoal_buffer::Packet;

use crate::IpFamily;

/// Bytes that are kept: an IPv6 header, an extension header and the transport's.
const KEPT: usize = 96;

/// A copy of a packet's first bytes, printed when a trace is shown.
pub struct Headers<F> {
    bytes: [u8; KEPT],
    len: usize,
    family: PhantomData<F>,
}

impl<F: IpFamily> Headers<F> {
    /// Copies them from a packet whose front is its network header.
    pub fn of(pkt: &Packet<'_>) -> Self {
        Self::behind(0, pkt)
    }

    /// Copies them from a packet with `skip` bytes of link layer in front.
    pub fn behind(skip: usize, pkt: &Packet<'_>) -> Self {
        let mut bytes = [0; KEPT];
        let len = pkt.copy_at(skip, &mut bytes);
        Headers { bytes, len, family: PhantomData }
    }
}

impl<F: IpFamily> fmt::Display for Headers<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        F::describe(self.bytes.get(..self.len).unwrap_or_default(), f)
    }
}
