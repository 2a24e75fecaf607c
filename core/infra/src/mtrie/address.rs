//! What the trie asks of an address: numbers in host order, the first bit of the prefix on top.

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

/// An address to look up, in host order: `u32` for IPv4, `u128` for IPv6.
pub trait Address: Copy + sealed::Sealed {
    /// Bits of an address, and the longest prefix.
    const BITS: u8;
    /// Levels of plies below the root.
    const LEVELS: u8 = (Self::BITS - 16) / 8;

    /// The upper 16 bits.
    fn top(self) -> u16;

    /// The 8 bits that a ply of `level` is indexed by; levels count from 1. Beyond
    /// [`LEVELS`](Self::LEVELS) it is any 8 bits.
    fn byte(self, level: u8) -> u8;

    /// The address with all bits beyond the first `len` cleared.
    fn network(self, len: u8) -> Self;
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
            fn byte(self, level: u8) -> u8 {
                self.wrapping_shr((<$name>::BITS - 16).wrapping_sub(8 * u32::from(level))) as u8
            }

            fn network(self, len: u8) -> Self {
                let host = <$name>::MAX.checked_shr(u32::from(len)).unwrap_or(0);
                self & !host
            }
        }
    };
}

address!(u32);
address!(u128);
