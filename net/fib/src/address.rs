//! Addresses as the numbers tables are keyed by.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_infra::mtrie::Address;
use shoal_wire::{Ip4Prefix, Ip6Prefix, IpPrefix};

/// An address of one family in host order.
pub(crate) trait Bits: Address + Hash + Into<u128> + TryFrom<u128> {
    const FAMILY: Family;

    /// An address and a word of 32 bits, without gaps.
    type Place: Copy;
    /// The word is 0.
    const EMPTY: Self::Place;

    /// `None` for an address of the other family.
    fn of(addr: IpAddr) -> Option<Self>;
    fn prefix(self, len: u8) -> Option<IpPrefix>;
    fn place(self, word: u32) -> Self::Place;
    fn read(place: &Self::Place) -> (Self, u32);
}

impl Bits for u32 {
    const FAMILY: Family = Family::Ip4;
    type Place = [u32; 2];
    const EMPTY: Self::Place = [0; 2];

    fn of(addr: IpAddr) -> Option<u32> {
        if let IpAddr::V4(addr) = addr { Some(addr.to_bits()) } else { None }
    }

    fn prefix(self, len: u8) -> Option<IpPrefix> {
        Ip4Prefix::new(Ipv4Addr::from_bits(self), len).ok().map(IpPrefix::Ip4)
    }

    #[inline(always)]
    fn place(self, word: u32) -> Self::Place {
        [self, word]
    }

    #[inline(always)]
    fn read(&[addr, word]: &Self::Place) -> (Self, u32) {
        (addr, word)
    }
}

impl Bits for u128 {
    const FAMILY: Family = Family::Ip6;
    type Place = [u32; 5];
    const EMPTY: Self::Place = [0; 5];

    fn of(addr: IpAddr) -> Option<u128> {
        if let IpAddr::V6(addr) = addr { Some(addr.to_bits()) } else { None }
    }

    fn prefix(self, len: u8) -> Option<IpPrefix> {
        Ip6Prefix::new(Ipv6Addr::from_bits(self), len).ok().map(IpPrefix::Ip6)
    }

    #[inline(always)]
    fn place(self, word: u32) -> Self::Place {
        [(self >> 96) as u32, (self >> 64) as u32, (self >> 32) as u32, self as u32, word]
    }

    #[inline(always)]
    fn read(&[a, b, c, d, word]: &Self::Place) -> (Self, u32) {
        (u128::from(a) << 96 | u128::from(b) << 64 | u128::from(c) << 32 | u128::from(d), word)
    }
}

/// The family of a prefix.
pub(crate) fn family(prefix: &IpPrefix) -> Family {
    Family::of(prefix.network())
}

/// Where a prefix of a family stands among others: by network, then length.
pub(crate) fn place(prefix: &IpPrefix) -> (u128, u8) {
    let network = match prefix {
        IpPrefix::Ip4(p) => u128::from(p.network().to_bits()),
        IpPrefix::Ip6(p) => p.network().to_bits(),
    };
    (network, prefix.len())
}

/// The highest address of a prefix.
pub(crate) fn last(prefix: &IpPrefix) -> IpAddr {
    match prefix {
        IpPrefix::Ip4(p) => p.range().last().into(),
        IpPrefix::Ip6(p) => p.last().into(),
    }
}

/// Whether an address is one host's that packets can be sent to.
pub(crate) fn is_one_host(addr: IpAddr) -> bool {
    let broadcast = matches!(addr, IpAddr::V4(a) if a.is_broadcast());
    !addr.is_unspecified() && !addr.is_multicast() && !broadcast
}

/// Whether an address means something on one link only (RFC 4291 2.5.6).
pub(crate) fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(a) if a.is_unicast_link_local())
}

/// Hashes addresses by one multiplication with a secret number, so that no sender can make them collide.
#[derive(Clone)]
pub(crate) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        Keyed(std::hash::RandomState::new().hash_one(0u8) | 1)
    }
}

impl BuildHasher for Keyed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold { key: self.0, state: 0 }
    }
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) struct Fold {
    key: u64,
    state: u64,
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            if let Some(to) = word.get_mut(..part.len()) {
                to.copy_from_slice(part);
            }
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.state.rotate_left(23) ^ n ^ self.key)
            * u128::from(self.key.rotate_left(32) ^ MIX);
        self.state = (product >> 64) as u64 ^ product as u64;
    }

    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64);
        self.write_u64((n >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.state ^ self.state >> 32
    }
}
