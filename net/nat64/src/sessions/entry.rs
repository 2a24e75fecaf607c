//! What the table of a worker holds, and by what keys.
//!
//! A binding has an entry for each side, and so has a session: a packet of either direction finds its session by one
//! look-up. Keys hold whatever their entry need not repeat; so an entry is one line of a cache.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Remote;
use crate::config::{Inside, Outside};
use crate::tcp::State;

/// Addresses, table, ports and protocol, and what the entry is of.
pub type Key = [u64; 4];

/// What a key is of, in its last byte.
const OF_INSIDE: u8 = 1;
const OF_OUTSIDE: u8 = 2;
const FROM_HOST: u8 = 3;
const FROM_INTERNET: u8 = 4;

/// What a key leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// A binding.
    Binding {
        outside: Remote,
        is_static: bool,
        sessions: u32,
        /// The place of the entry by the outside.
        other: u32,
    },
    /// The place of the binding.
    Outside(u32),
    /// A session, by the packets of its host.
    Session {
        outside: Remote,
        /// Of TCP.
        state: State,
        /// The place of its binding.
        binding: u32,
        /// The place of the entry by the packets of the Internet.
        other: u32,
    },
    /// A session, by the packets of the Internet.
    Reply {
        /// The place of the session.
        session: u32,
        /// The tick of its first packet, as far as ticks of a session are told apart.
        began: u32,
    },
}

const _: () = assert!(size_of::<Entry>() == 16, "with key and the table's own 16 bytes: 64");

/// Ports, protocol, and what the key is of.
const fn last(port: u16, remote: u16, protocol: u8, of: u8) -> u64 {
    (port as u64) << 48 | (remote as u64) << 32 | (protocol as u64) << 8 | of as u64
}

#[inline(always)]
const fn host_key(inside: &Inside, far: u32, remote: u16, of: u8) -> Key {
    let bits = inside.address.to_bits();
    let middle = (inside.table as u64) << 32 | far as u64;
    [(bits >> 64) as u64, bits as u64, middle, last(inside.port, remote, inside.protocol, of)]
}

/// Of a binding by its host.
pub(super) const fn inside_key(inside: &Inside) -> Key {
    host_key(inside, 0, 0, OF_INSIDE)
}

/// Of a binding by its shared address and port.
pub(super) fn outside_key(outside: Outside) -> Key {
    let Outside { address, port, protocol } = outside;
    [0, 0, u64::from(address.to_bits()) << 32, last(port, 0, protocol, OF_OUTSIDE)]
}

/// Of a session by the packets of its host.
#[inline(always)]
pub fn from_host_key(inside: &Inside, (address, port): Remote) -> Key {
    host_key(inside, address.to_bits(), port, FROM_HOST)
}

/// Of a session by the packets of the Internet.
#[inline(always)]
pub fn from_internet_key(outside: Outside, (from, from_port): Remote) -> Key {
    let Outside { address, port, protocol } = outside;
    let middle = u64::from(address.to_bits()) << 32 | u64::from(from.to_bits());
    [0, 0, middle, last(port, from_port, protocol, FROM_INTERNET)]
}

/// The host that the key of a binding or session names.
#[inline(always)]
pub(super) const fn inside_of([high, low, middle, last]: &Key) -> Inside {
    Inside {
        address: Ipv6Addr::from_bits((*high as u128) << 64 | *low as u128),
        port: (*last >> 48) as u16,
        protocol: protocol_of(*last),
        table: (*middle >> 32) as u32,
    }
}

/// The shared address that the key of a session of the Internet's packets names.
#[inline(always)]
pub fn shared_of([.., middle, _]: &Key) -> Ipv4Addr {
    Ipv4Addr::from_bits((*middle >> 32) as u32)
}

/// The remote end that the key of a session's host names.
pub const fn remote_of([.., middle, last]: &Key) -> Remote {
    (Ipv4Addr::from_bits(*middle as u32), (*last >> 32) as u16)
}

/// The protocol in a key's last word.
pub(super) const fn protocol_of(last: u64) -> u8 {
    (last >> 8) as u8
}
