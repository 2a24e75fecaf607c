//! Ethernet MAC addresses, written the two ways VPP accepts them.
#![allow(clippy::many_single_char_names, reason = "the six bytes of an address")]

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A 48-bit MAC address, bytes in the order they travel (IEEE 802).
///
/// ```
/// use shoal_wire::MacAddress;
/// let mac: MacAddress = "02fe.aabb.ccdd".parse()?;
/// assert_eq!(mac.to_string(), "02:fe:aa:bb:cc:dd");
/// # Ok::<(), shoal_wire::mac::MacParseError>(())
/// ```
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// `00:00:00:00:00:00`: unknown, as in the target of an ARP request.
    pub const ZERO: Self = Self([0; 6]);
    /// `ff:ff:ff:ff:ff:ff`: every station.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The group bit is set: multicast or broadcast.
    #[inline(always)]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Exactly `ff:ff:ff:ff:ff:ff`.
    #[inline(always)]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }

    /// All six bytes are zero.
    #[inline(always)]
    pub const fn is_zero(self) -> bool {
        self.to_u64() == 0
    }

    /// The address as the low 48 bits of a number, first byte most significant; for hash keys.
    #[inline(always)]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The inverse of [`to_u64`](Self::to_u64); the upper 16 bits are ignored.
    #[inline(always)]
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// `01:00:5e` and the low 23 bits of the group (RFC 1112 section 6.4).
    pub const fn for_ip4_multicast(group: std::net::Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// `33:33` and the low 32 bits of the group (RFC 2464 section 7).
    #[inline(always)]
    pub const fn for_ip6_multicast(group: std::net::Ipv6Addr) -> Self {
        let [a, b, c, d] = (group.to_bits() as u32).to_be_bytes();
        Self([0x33, 0x33, a, b, c, d])
    }
}

impl From<[u8; 6]> for MacAddress {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is neither `aa:bb:cc:dd:ee:ff` nor `aabb.ccdd.eeff`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MacParseError {
    text: String,
}

impl fmt::Display for MacParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: not a MAC address, expected aa:bb:cc:dd:ee:ff or aabb.ccdd.eeff", self.text)
    }
}

impl Error for MacParseError {}

impl FromStr for MacAddress {
    type Err = MacParseError;

    fn from_str(text: &str) -> Result<Self, MacParseError> {
        groups::<6>(text, ':', 2)
            .map(|g| Self(g.map(|v| v as u8)))
            .or_else(|| {
                let [a, b, c] = groups::<3>(text, '.', 4)?;
                Some(Self::from_u64(u64::from(a) << 32 | u64::from(b) << 16 | u64::from(c)))
            })
            .ok_or_else(|| MacParseError { text: text.chars().take(64).collect() })
    }
}

/// Exactly `N` hexadecimal groups of 1 to `digits` digits with `separator` between them.
fn groups<const N: usize>(text: &str, separator: char, digits: usize) -> Option<[u16; N]> {
    let mut out = [0; N];
    let mut parts = text.split(separator);
    for slot in &mut out {
        let part = parts.next()?;
        // from_str_radix would also accept a sign.
        if part.len() > digits || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *slot = u16::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints_both_notations() {
        let want = MacAddress([0x02, 0xfe, 0xaa, 0xbb, 0xcc, 0x0d]);
        for text in ["02:fe:aa:bb:cc:0d", "2:FE:aa:bb:cc:d", "02fe.aabb.cc0d", "2fe.aabb.CC0D"] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
        assert_eq!(want.to_string(), "02:fe:aa:bb:cc:0d");
        assert_eq!(MacAddress::from_u64(want.to_u64()), want);
    }

    #[test]
    fn refuses_text_that_is_no_address() {
        for text in
            ["", "02:fe:aa:bb:cc", "02:fe:aa:bb:cc:dd:ee", "+2:fe:aa:bb:cc:dd", "02fe.aabb", "é", "1.2.3.4"]
        {
            let error = text.parse::<MacAddress>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("{text}: not a MAC address")), "{error}");
        }
    }

    #[test]
    fn broadcast_is_a_multicast_and_unicast_is_not() {
        assert!(MacAddress::BROADCAST.is_broadcast() && MacAddress::BROADCAST.is_multicast());
        let group = MacAddress::for_ip4_multicast([224, 128, 0, 5].into());
        assert_eq!(group.to_string(), "01:00:5e:00:00:05");
        assert!(group.is_multicast() && !group.is_broadcast());
        assert!(!MacAddress([2, 0, 0, 0, 0, 1]).is_multicast());
        let group = MacAddress::for_ip6_multicast("ff02::1:ffab:cdef".parse().unwrap());
        assert_eq!(group.to_string(), "33:33:ff:ab:cd:ef");
        assert!(group.is_multicast());
    }
}
