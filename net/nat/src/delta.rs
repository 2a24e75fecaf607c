//! Checksums that follow a change of what they cover (RFC 1624).

use crate::tuple::Tuple;

/// What is to be added to the complement of a checksum when words that it covers change: a ones' complement number. It depends
/// on the words alone, so one is computed when a session is made and added to each of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delta(u16);

const fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

impl Delta {
    /// Nothing changes.
    pub const NONE: Delta = Delta(0);

    /// One word of 16 bits changes.
    #[must_use]
    #[inline(always)]
    pub const fn word(self, old: u16, new: u16) -> Delta {
        if old == new {
            return self;
        }
        Delta(fold(self.0 as u32 + (!old) as u32 + new as u32))
    }

    /// A word of 32 bits changes, such as an address.
    #[must_use]
    #[inline(always)]
    pub const fn long(self, old: u32, new: u32) -> Delta {
        self.word((old >> 16) as u16, (new >> 16) as u16).word(old as u16, new as u16)
    }

    /// An IPv6 address changes.
    #[must_use]
    pub const fn wide(self, old: u128, new: u128) -> Delta {
        self.long((old >> 96) as u32, (new >> 96) as u32)
            .long((old >> 64) as u32, (new >> 64) as u32)
            .long((old >> 32) as u32, (new >> 32) as u32)
            .long(old as u32, new as u32)
    }

    /// Words that were not covered are, as a sum of them.
    #[must_use]
    #[inline(always)]
    pub const fn enter(self, sum: u16) -> Delta {
        Delta(fold(self.0 as u32 + sum as u32))
    }

    /// Words that were covered are no more.
    #[must_use]
    #[inline(always)]
    pub const fn leave(self, sum: u16) -> Delta {
        if sum == 0 { self } else { Delta(fold(self.0 as u32 + (!sum) as u32)) }
    }

    /// The sum of an IPv4 address's words.
    #[inline(always)]
    pub const fn sum_of_long(long: u32) -> u16 {
        fold((long >> 16) + (long & 0xffff))
    }

    /// The sum of an IPv6 address's words.
    #[inline(always)]
    pub const fn sum_of_wide(wide: u128) -> u16 {
        let (high, low) = ((wide >> 64) as u64, wide as u64);
        let sum = (high >> 32) + (high & 0xffff_ffff) + (low >> 32) + (low & 0xffff_ffff);
        // Up to 34 bits: what is above 32 comes in again.
        let sum = (sum >> 32) + (sum & 0xffff_ffff);
        let sum = (sum >> 32) + (sum & 0xffff_ffff);
        Delta::sum_of_long(sum as u32)
    }

    /// Both addresses change.
    #[inline(always)]
    pub const fn addresses(old: Tuple, new: Tuple) -> Delta {
        Delta::NONE.long(old.src, new.src).long(old.dst, new.dst)
    }

    /// Both ports change, too.
    #[must_use]
    #[inline(always)]
    pub const fn ports(self, old: Tuple, new: Tuple) -> Delta {
        self.word(old.sport, new.sport).word(old.dport, new.dport)
    }

    /// The checksum after the change.
    #[inline(always)]
    pub const fn apply(self, checksum: u16) -> u16 {
        !self.add(!checksum)
    }

    /// A sum that is not complemented, after the change: what a packet carries whose checksum a device completes.
    #[inline(always)]
    pub const fn add(self, sum: u16) -> u16 {
        fold(sum as u32 + self.0 as u32)
    }

    /// As a number, for sessions.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// What [`to_bits`](Self::to_bits) gave.
    pub const fn from_bits(bits: u16) -> Delta {
        Delta(bits)
    }
}
