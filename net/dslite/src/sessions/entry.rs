//! What the table of a worker holds, and by what keys.
//!
//! A session has an entry by its host, which holds it, and one by its shared address and port, which leads there. A key holds
//! what its entry need not repeat; so an entry is one line of a cache.

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_nat::tuple::TCP;

use super::{Inside, Outside, Side};

/// The B4, and the address, port and protocol of a side.
pub type Key = [u64; 3];

const FIN: u8 = 1;
const RST: u8 = 4;

/// In the last word of a key of the outside: no packet of a tunnel has such a key.
const OF_OUTSIDE: u64 = 1 << 15;

/// What a key leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The shared address and port, of a session.
    pub outside: (Ipv4Addr, u16),
    /// The other entry's place.
    pub peer: u32,
    /// Directions that have ended: a bit each, as [`Side`].
    pub ended: u8,
    /// Packets of both directions: the highest of five bytes, and the rest.
    packets_high: u8,
    packets_low: u32,
    /// Of both directions.
    pub bytes: u64,
}

const _: () = assert!(size_of::<Entry>() == 24, "with key and the table's own 16 bytes: 64");

/// Address, port and protocol.
const fn last(address: Ipv4Addr, port: u16, protocol: u8) -> u64 {
    (address.to_bits() as u64) << 32 | (port as u64) << 16 | protocol as u64
}

/// Of a session by its host.
#[inline(always)]
pub const fn inside_key(inside: &Inside) -> Key {
    let b4 = inside.b4.to_bits();
    [(b4 >> 64) as u64, b4 as u64, last(inside.address, inside.port, inside.protocol)]
}

/// Of a session by its shared address and port.
#[inline(always)]
pub const fn outside_key(outside: Outside) -> Key {
    [0, 0, last(outside.address, outside.port, outside.protocol) | OF_OUTSIDE]
}

/// The host that the key of a session names.
#[inline(always)]
pub(super) const fn inside_of([high, low, last]: &Key) -> Inside {
    Inside {
        b4: Ipv6Addr::from_bits((*high as u128) << 64 | *low as u128),
        address: Ipv4Addr::from_bits((*last >> 32) as u32),
        port: (*last >> 16) as u16,
        protocol: *last as u8,
    }
}

/// Whether a key is of an entry that only leads to a session.
#[inline(always)]
pub(super) const fn is_outside([_, _, last]: &Key) -> bool {
    *last & OF_OUTSIDE != 0
}

impl Entry {
    /// Of a session without packets, or of the way to one.
    pub fn new(outside: Outside, peer: u32) -> Self {
        let outside = (outside.address, outside.port);
        Entry { outside, peer, ended: 0, packets_high: 0, packets_low: 0, bytes: 0 }
    }

    pub fn packets(&self) -> u64 {
        u64::from(self.packets_high) << 32 | u64::from(self.packets_low)
    }

    pub fn set_packets(&mut self, packets: u64) {
        (self.packets_high, self.packets_low) = ((packets >> 32) as u8, packets as u32);
    }

    /// A packet of so many bytes, and with such flags if it is of TCP, comes from a side; whether both have ended by it.
    #[inline(always)]
    pub fn takes(&mut self, from: Side, protocol: u8, bytes: usize, flags: u8) -> bool {
        self.set_packets(self.packets() + 1);
        self.bytes += bytes as u64;
        if protocol != TCP || flags & (FIN | RST) == 0 {
            return false;
        }
        let before = self.ended;
        self.ended |= if flags & RST != 0 { Side::BOTH } else { from.bit() };
        before != Side::BOTH && self.ended == Side::BOTH
    }
}
