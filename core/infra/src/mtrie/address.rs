//! What the trie asks of an address: numbers in host order, the first bit of the prefix on top.

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

/// Levels whose plies are indexed by 8 bits: down to /32. The others, where tables are sparse, are by 4.
pub(super) const WIDE_LEVELS: u8 = 2;

/// Length of the prefix that a slot of this level stands for; level 0 is the root.
#[inline(always)]
pub(super) const fn slot_length(level: u8) -> u8 {
    if level <= WIDE_LEVELS { 16 + 8 * level } else { 16 + 4 * WIDE_LEVELS + 4 * level }
}

/// The level whose slots stand for prefixes of this length or the next longer ones.
pub(super) const fn level_of(len: u8) -> u8 {
    let mut level = 0;
    while slot_length(level) < len {
        level += 1;
    }
    level
}

/// Slots of a ply of this level.
#[inline(always)]
pub(super) const fn width(level: u8) -> usize {
    if level <= WIDE_LEVELS { 256 } else { 16 }
}

/// An address to look up, in host order: `u32` for IPv4, `u128` for IPv6.
pub trait Address: Copy + Default + Ord + sealed::Sealed {
    /// Bits of an address, and the longest prefix.
    const BITS: u8;
    /// Levels of plies below the root.
    const LEVELS: u8 = level_of(Self::BITS);
    /// Levels of plies that are few, and so stay in the caches: those down to /24 for IPv6.
    const CACHED_LEVELS: u8 = if Self::BITS > 32 { 1 } else { 0 };

    /// The upper 16 bits.
    fn top(self) -> u16;

    /// The bits that a ply of `level` is indexed by, 8 or 4 of them; levels count from 1. Beyond
    /// [`LEVELS`](Self::LEVELS) they are any bits.
    fn digit(self, level: u8) -> usize;

    /// What comes behind the first 32 bits: 64 bits, and 32 more at the top of the other number.
    fn tail(self) -> [u64; 2];

    /// The first 64 bits; those of an IPv4 address on top.
    fn upper(self) -> u64;

    /// The address with this [`upper`](Self::upper) half, and 0 behind it.
    fn from_upper(upper: u64) -> Self;

    /// The address with all bits beyond the first `len` cleared.
    fn network(self, len: u8) -> Self;

    /// The first address behind the network of the first `len` bits, if there is one.
    fn behind(self, len: u8) -> Option<Self>;

    /// The length of the shortest prefix that begins at the address: the bits up to the last one that is set.
    fn shortest(self) -> u8;
}

macro_rules! address {
    ($name:ty) => {
        impl Address for $name {
            const BITS: u8 = <$name>::BITS as u8;

            #[inline(always)]
            fn top(self) -> u16 {
                (self >> (<$name>::BITS - 16)) as u16
            }

            #[inline(always)]
            fn digit(self, level: u8) -> usize {
                let below = <$name>::BITS.wrapping_sub(u32::from(slot_length(level)));
                self.wrapping_shr(below) as usize & (width(level) - 1)
            }

            #[inline(always)]
            fn tail(self) -> [u64; 2] {
                let aligned = u128::from(self) << (128 - <$name>::BITS) << 32;
                [(aligned >> 64) as u64, aligned as u64]
            }

            #[inline(always)]
            fn upper(self) -> u64 {
                (u128::from(self) << (128 - <$name>::BITS) >> 64) as u64
            }

            fn from_upper(upper: u64) -> Self {
                (u128::from(upper) << 64 >> (128 - <$name>::BITS)) as $name
            }

            fn network(self, len: u8) -> Self {
                let host = <$name>::MAX.checked_shr(u32::from(len)).unwrap_or(0);
                self & !host
            }

            fn behind(self, len: u8) -> Option<Self> {
                let host = <$name>::MAX.checked_shr(u32::from(len)).unwrap_or(0);
                (self | host).checked_add(1)
            }

            fn shortest(self) -> u8 {
                (<$name>::BITS - self.trailing_zeros()) as u8
            }
        }
    };
}

address!(u32);
address!(u128);
