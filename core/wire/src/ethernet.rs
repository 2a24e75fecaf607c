//! The Ethernet II header (IEEE 802.3) and the EtherTypes this router knows.

use std::fmt;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::MacAddress;

/// An EtherType in host order. Its `Display` is VPP's name, or the number in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IP4: Self = Self(0x0800);
    /// ARP (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// A customer VLAN tag (IEEE 802.1Q).
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IP6: Self = Self(0x86dd);
    /// MPLS unicast (RFC 5332).
    pub const MPLS: Self = Self(0x8847);
    /// PPPoE discovery (RFC 2516).
    pub const PPPOE_DISCOVERY: Self = Self(0x8863);
    /// PPPoE session (RFC 2516).
    pub const PPPOE_SESSION: Self = Self(0x8864);
    /// LACP and other slow protocols (IEEE 802.3 annex 57A).
    pub const SLOW_PROTOCOLS: Self = Self(0x8809);
    /// A service VLAN tag (IEEE 802.1ad), the outer tag of "QinQ".
    pub const QINQ: Self = Self(0x88a8);
    /// LLDP (IEEE 802.1AB).
    pub const LLDP: Self = Self(0x88cc);

    /// A value below this is an IEEE 802.3 length, not a type.
    pub const MIN: u16 = 0x0600;

    /// A VLAN tag follows: 802.1Q or 802.1ad.
    #[inline(always)]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::QINQ)
    }

    /// VPP's name of the type, if it has one here.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::IP4 => "IP4",
            Self::ARP => "ARP",
            Self::VLAN => "VLAN",
            Self::IP6 => "IP6",
            Self::MPLS => "MPLS",
            Self::PPPOE_DISCOVERY => "PPPOE_DISCOVERY",
            Self::PPPOE_SESSION => "PPPOE_SESSION",
            Self::SLOW_PROTOCOLS => "SLOW_PROTOCOLS",
            Self::QINQ => "DOT1AD",
            Self::LLDP => "802_1_LLDP",
            _ => return None,
        })
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:04x}", self.0),
        }
    }
}

/// The 14-byte Ethernet header. `Display` is VPP's: `IP4: <source> -> <destination>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EthernetHeader {
    dst: MacAddress,
    src: MacAddress,
    ether_type: U16,
}

impl EthernetHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 14;

    /// A header from its three fields.
    #[inline(always)]
    pub const fn new(src: MacAddress, dst: MacAddress, ether_type: EtherType) -> Self {
        Self { dst, src, ether_type: U16::new(ether_type.0) }
    }

    /// Source MAC address.
    #[inline(always)]
    pub const fn src(&self) -> MacAddress {
        self.src
    }

    /// Destination MAC address.
    #[inline(always)]
    pub const fn dst(&self) -> MacAddress {
        self.dst
    }

    /// Destination and source as [`MacAddress::to_u64`] gives them, read at once.
    #[inline(always)]
    #[expect(clippy::many_single_char_names, reason = "the bytes of two addresses have no other names")]
    pub const fn stations(&self) -> (u64, u64) {
        let ([a, b, c, d, e, f], [u, v, w, x, y, z]) = (&self.dst.0, &self.src.0);
        let (first, rest) =
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *u, *v]), u32::from_be_bytes([*w, *x, *y, *z]));
        (first >> 16, (first & 0xffff) << 32 | rest as u64)
    }

    /// Whether it is for the station with these bytes. By reference, or bytes would be loaded one by one.
    #[inline(always)]
    #[expect(clippy::many_single_char_names, reason = "the bytes of two addresses have no other names")]
    pub const fn is_to(&self, mac: &[u8; 6]) -> bool {
        let ([a, b, c, d, e, f], [u, v, w, x, y, z]) = (&self.dst.0, mac);
        let differ = u32::from_ne_bytes([*a, *b, *c, *d]) ^ u32::from_ne_bytes([*u, *v, *w, *x]);
        let rest = u16::from_ne_bytes([*e, *f]) ^ u16::from_ne_bytes([*y, *z]);
        differ | rest as u32 == 0
    }

    /// The EtherType, or an 802.3 length when below [`EtherType::MIN`].
    #[inline(always)]
    pub const fn ether_type(&self) -> EtherType {
        EtherType(self.ether_type.get())
    }

    /// Sets the source MAC address.
    #[inline(always)]
    pub const fn set_src(&mut self, mac: MacAddress) {
        self.src = mac;
    }

    /// Sets the destination MAC address.
    #[inline(always)]
    pub const fn set_dst(&mut self, mac: MacAddress) {
        self.dst = mac;
    }

    /// Sets the EtherType.
    #[inline(always)]
    pub fn set_ether_type(&mut self, ether_type: EtherType) {
        self.ether_type = U16::new(ether_type.0);
    }
}

impl fmt::Display for EthernetHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.ether_type(), self.src, self.dst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_vpp_does() {
        let (src, dst) = (MacAddress([2, 0xfe, 0xaa, 0xbb, 0xcc, 0xdd]), MacAddress::BROADCAST);
        let header = EthernetHeader::new(src, dst, EtherType::IP4);
        assert_eq!(header.to_string(), "IP4: 02:fe:aa:bb:cc:dd -> ff:ff:ff:ff:ff:ff");
        let odd = EthernetHeader::new(src, dst, EtherType(0x1234));
        assert!(odd.to_string().starts_with("0x1234: "));
    }

    #[test]
    fn lays_the_destination_first() {
        let header = EthernetHeader::new(MacAddress([1; 6]), MacAddress([2; 6]), EtherType::IP6);
        assert_eq!(header.as_bytes(), [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0x86, 0xdd]);
        assert_eq!(size_of::<EthernetHeader>(), EthernetHeader::LEN);
    }
}
