//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
//!
//! Sums are kept in the machine's byte order, which RFC 1071 section 2(B) permits: the bytes of the
//! result land in the right order when they are stored the way they were loaded. Every checksum that
//! crosses this module's boundary is the plain number, so a setter that stores it big-endian is right.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::IpProtocol;

/// A ones' complement sum over any number of pieces, each of any length.
///
/// A piece of odd length leaves the sum at an odd position, so the next one is added with its bytes
/// swapped; a chain of buffer segments therefore sums to the same value as the bytes in one piece.
///
/// ```
/// use shoal_wire::checksum::{Sum, checksum};
/// let mut sum = Sum::new();
/// sum.add(&[1, 2, 3]);
/// sum.add(&[4, 5]);
/// assert_eq!(sum.finish(), checksum(&[1, 2, 3, 4, 5]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    acc: u64,
    odd: bool,
}

impl Sum {
    /// An empty sum.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { acc: 0, odd: false }
    }

    /// The IPv4 pseudo header (RFC 793 section 3.1, RFC 768): addresses, protocol and the length in
    /// bytes of the transport header with its payload.
    #[inline(always)]
    pub const fn pseudo_ip4(src: Ipv4Addr, dst: Ipv4Addr, protocol: IpProtocol, length: u16) -> Self {
        let acc = u32::from_ne_bytes(src.octets()) as u64
            + u32::from_ne_bytes(dst.octets()) as u64
            + (protocol.0 as u16).to_be() as u64
            + length.to_be() as u64;
        Self { acc, odd: false }
    }

    /// The IPv6 pseudo header (RFC 8200 section 8.1).
    #[inline]
    pub fn pseudo_ip6(src: Ipv6Addr, dst: Ipv6Addr, protocol: IpProtocol, length: u32) -> Self {
        let mut sum = Self::new();
        sum.add(&src.octets());
        sum.add(&dst.octets());
        sum.acc += u64::from(length.to_be()) + u64::from(u16::from(protocol.0).to_be());
        sum
    }

    /// Adds the next piece of the message.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let part = sum_ne(bytes);
        self.acc += u64::from(if self.odd { part.swap_bytes() } else { part });
        self.odd ^= !bytes.len().is_multiple_of(2);
    }

    /// Adds one 16-bit number of the message.
    #[inline(always)]
    pub fn add_u16(&mut self, value: u16) {
        let value = value.to_be();
        self.acc += u64::from(if self.odd { value.swap_bytes() } else { value });
    }

    /// The folded sum, not complemented: `0xffff` when a message with a right checksum was added.
    #[inline(always)]
    pub const fn folded(self) -> u16 {
        u16::from_be(fold(self.acc))
    }

    /// The checksum of what was added.
    #[inline(always)]
    pub const fn finish(self) -> u16 {
        !self.folded()
    }

    /// As [`Sum::finish`] for UDP, where 0 would mean "no checksum".
    #[inline(always)]
    pub const fn finish_udp(self) -> u16 {
        // RFC 768: a computed zero is sent as all ones, which is the same number in ones' complement.
        match self.finish() {
            0 => 0xffff,
            checksum => checksum,
        }
    }
}

/// Folds 64 bits to 16 with end-around carry.
#[inline(always)]
pub(crate) const fn fold(acc: u64) -> u16 {
    // The upper half of x + rotate(x) is high + low + the carry of low + high; so in fold32.
    fold32((acc.wrapping_add(acc.rotate_left(32)) >> 32) as u32)
}

/// Folds 32 bits to 16 with end-around carry.
#[inline(always)]
pub(crate) const fn fold32(x: u32) -> u16 {
    (x.wrapping_add(x.rotate_left(16)) >> 16) as u16
}

/// The folded sum of `bytes` in machine order; an odd last byte is padded with zero (RFC 1071).
#[inline]
fn sum_ne(bytes: &[u8]) -> u16 {
    // Sixteen bytes hold four halves of 32 bits: the sum cannot overflow below 2^34 bytes, and the
    // four independent lanes let the compiler use vector adds.
    let (blocks, rest) = bytes.as_chunks::<16>();
    let mut lanes = [0u64; 4];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let [a, b, c, d] = lanes;
    let mut acc = a + b + c + d;
    let (words, tail) = rest.as_chunks::<2>();
    for word in words {
        acc += u64::from(u16::from_ne_bytes(*word));
    }
    if let [last] = tail {
        acc += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    fold(acc)
}

/// The checksum of `bytes`, whose checksum field (if it has one) is zero.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    u16::from_be(!sum_ne(bytes))
}

/// Whether `bytes`, which include their checksum field, sum to "all ones".
#[inline]
pub fn verify(bytes: &[u8]) -> bool {
    sum_ne(bytes) == 0xffff
}

/// The new checksum after one 16-bit word of the message changed from `old` to `new`.
#[inline(always)]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    // RFC 1624 equation 3: HC' = ~(~HC + ~m + m'). Equation 2 would turn 0x0000 into 0xffff.
    !fold32(!checksum as u32 + !old as u32 + new as u32)
}

/// As [`update_u16`], for an aligned 32-bit field such as an address.
#[inline(always)]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
    }

    #[test]
    fn updates_the_example_of_rfc_1624_without_negative_zero() {
        // RFC 1624 section 4: header sum 0xdd2f, m 0x5555 becomes 0x3285: the checksum is 0x0000.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(update_u32(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn pseudo_headers_equal_their_bytes() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 168, 255, 254));
        let mut bytes = [a.octets(), b.octets()].concat();
        bytes.extend([0, 17, 0x12, 0x34]);
        assert_eq!(Sum::pseudo_ip4(a, b, IpProtocol::UDP, 0x1234).finish(), checksum(&bytes));
        let (a, b): (Ipv6Addr, Ipv6Addr) = ("2001:db8::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let mut bytes = [a.octets(), b.octets()].concat();
        bytes.extend([0, 1, 0x12, 0x34, 0, 0, 0, 6]);
        assert_eq!(Sum::pseudo_ip6(a, b, IpProtocol::TCP, 0x1_1234).finish(), checksum(&bytes));
    }

    #[test]
    fn an_odd_piece_shifts_what_follows() {
        let mut sum = Sum::new();
        sum.add(&[0x11]);
        sum.add_u16(0x2233);
        sum.add(&[0x44]);
        assert_eq!(sum.finish(), checksum(&[0x11, 0x22, 0x33, 0x44]));
    }
}
