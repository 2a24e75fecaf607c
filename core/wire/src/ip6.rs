//! The fixed IPv6 header (RFC 8200 section 3); extension headers are in [`ip6_ext`](crate::ip6_ext),
//! what an address means in [`ip6_address`](crate::ip6_address).
//!
//! This file is on the hot path of every routed packet: an address is two loads of 8 bytes, the
//! version one masked compare, and there is no checksum to keep.

use std::fmt;
use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::IpProtocol;

/// The 40-byte IPv6 header. `Display` is VPP's packet trace text, without the layers above; use
/// [`describe_ip6`](crate::describe_ip6) for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ip6Header {
    version_class_flow: U32,
    payload_length: U16,
    protocol: u8,
    hop_limit: u8,
    src: [u8; 16],
    dst: [u8; 16],
}

impl Ip6Header {
    /// Bytes on the wire.
    pub const LEN: usize = 40;
    /// The largest flow label: 20 bits.
    pub const MAX_FLOW_LABEL: u32 = 0xf_ffff;
    /// Offset of the payload length, for the pointer of an ICMPv6 parameter problem.
    pub const PAYLOAD_LENGTH_AT: usize = 4;
    /// Offset of the next header field.
    pub const NEXT_HEADER_AT: usize = 6;
    /// Offset of the destination address.
    pub const DST_AT: usize = 24;
    /// The smallest MTU of a link that carries IPv6, in bytes (RFC 8200 section 5).
    pub const MIN_MTU: usize = 1280;

    /// A header with traffic class and flow label 0; `payload_length` excludes these 40 bytes.
    pub const fn new(
        src: Ipv6Addr,
        dst: Ipv6Addr,
        protocol: IpProtocol,
        hop_limit: u8,
        payload_length: u16,
    ) -> Self {
        Self {
            version_class_flow: U32::new(6 << 28),
            payload_length: U16::new(payload_length),
            protocol: protocol.0,
            hop_limit,
            src: src.octets(),
            dst: dst.octets(),
        }
    }

    /// Version, traffic class and flow label as one number in host order.
    #[inline(always)]
    pub const fn version_class_flow(&self) -> u32 {
        self.version_class_flow.get()
    }

    /// The version is 6. One byte is looked at.
    #[inline(always)]
    pub const fn version_ok(&self) -> bool {
        self.version_class_flow.to_bytes()[0] & 0xf0 == 0x60
    }

    /// IP version, 6 when the packet tells the truth.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    /// DSCP and ECN.
    #[inline(always)]
    pub const fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }

    /// Differentiated services code point, 0 to 63 (RFC 2474).
    #[inline(always)]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// Explicit congestion notification, 0 to 3 (RFC 3168).
    #[inline(always)]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Flow label, 20 bits (RFC 6437).
    #[inline(always)]
    pub const fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & Self::MAX_FLOW_LABEL
    }

    /// Bytes after this header as claimed.
    #[inline(always)]
    pub const fn payload_length(&self) -> u16 {
        self.payload_length.get()
    }

    /// The next header: an extension header or the payload's protocol.
    #[inline(always)]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.protocol)
    }

    /// Hop limit, in hops.
    #[inline(always)]
    pub const fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Source address.
    #[inline(always)]
    pub const fn src(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.src)
    }

    /// Destination address.
    #[inline(always)]
    pub const fn dst(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.dst)
    }

    /// Source address as on the wire.
    #[inline(always)]
    pub const fn src_bytes(&self) -> &[u8; 16] {
        &self.src
    }

    /// Destination address as on the wire.
    #[inline(always)]
    pub const fn dst_bytes(&self) -> &[u8; 16] {
        &self.dst
    }

    /// Source address as a number in host order, for tables.
    #[inline(always)]
    pub const fn src_u128(&self) -> u128 {
        u128::from_be_bytes(self.src)
    }

    /// Destination address as a number in host order, for tables.
    #[inline(always)]
    pub const fn dst_u128(&self) -> u128 {
        u128::from_be_bytes(self.dst)
    }

    /// Sets the version (low 4 bits) and keeps traffic class and flow label.
    #[inline(always)]
    pub fn set_version(&mut self, version: u8) {
        let rest = self.version_class_flow.get() & 0x0fff_ffff;
        self.version_class_flow = U32::new(u32::from(version) << 28 | rest);
    }

    /// Sets DSCP and ECN.
    #[inline(always)]
    pub fn set_traffic_class(&mut self, class: u8) {
        let rest = self.version_class_flow.get() & 0xf00f_ffff;
        self.version_class_flow = U32::new(u32::from(class) << 20 | rest);
    }

    /// Sets the flow label; bits above the 20th are dropped. RFC 6437 section 3: a router leaves a
    /// label that is not zero as it is.
    #[inline(always)]
    pub fn set_flow_label(&mut self, label: u32) {
        let rest = self.version_class_flow.get() & !Self::MAX_FLOW_LABEL;
        self.version_class_flow = U32::new(label & Self::MAX_FLOW_LABEL | rest);
    }

    /// Sets the next header.
    #[inline(always)]
    pub const fn set_protocol(&mut self, protocol: IpProtocol) {
        self.protocol = protocol.0;
    }

    /// Sets the number of bytes after this header.
    #[inline(always)]
    pub fn set_payload_length(&mut self, bytes: u16) {
        self.payload_length = U16::new(bytes);
    }

    /// Sets the hop limit. IPv6 has no header checksum to update.
    #[inline(always)]
    pub const fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// Takes one hop off the hop limit and returns the new one. A hop limit of 0 stays 0: the caller
    /// drops packets whose hop limit is below 2 (RFC 8200 section 3).
    #[inline(always)]
    pub const fn decrement_hop_limit(&mut self) -> u8 {
        self.decrement_hop_limit_from(self.hop_limit)
    }

    /// The same for a caller that has just read the hop limit.
    #[inline(always)]
    pub const fn decrement_hop_limit_from(&mut self, hop_limit: u8) -> u8 {
        self.hop_limit = hop_limit.saturating_sub(1);
        self.hop_limit
    }

    /// Sets the source address.
    #[inline(always)]
    pub const fn set_src(&mut self, addr: Ipv6Addr) {
        self.src = addr.octets();
    }

    /// Sets the destination address.
    #[inline(always)]
    pub const fn set_dst(&mut self, addr: Ipv6Addr) {
        self.dst = addr.octets();
    }
}

impl fmt::Display for Ip6Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.protocol(), self.src(), self.dst())?;
        if self.version() != 6 {
            write!(f, "\n  version {}", self.version())?;
        }
        write!(
            f,
            "\n  tos 0x{:02x}, flow label 0x{:x}, hop limit {}, payload length {}",
            self.traffic_class(),
            self.flow_label(),
            self.hop_limit,
            self.payload_length()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_vpp_does() {
        let (src, dst) = ("2001:db8::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let mut ip = Ip6Header::new(src, dst, IpProtocol::UDP, 64, 8);
        let want = "UDP: 2001:db8::1 -> fe80::2\n  tos 0x00, flow label 0x0, hop limit 64, payload length 8";
        assert_eq!(ip.to_string(), want);
        ip.set_traffic_class(0xff);
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0xff, 0));
        ip.set_version(5);
        assert!(ip.to_string().contains("\n  version 5\n"));
        assert_eq!(size_of::<Ip6Header>(), Ip6Header::LEN);
    }

    #[test]
    fn fields_of_the_first_word_do_not_touch_each_other() {
        let mut ip = Ip6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, IpProtocol::TCP, 1, 0);
        ip.set_flow_label(u32::MAX);
        assert_eq!(ip.version_class_flow(), 0x600f_ffff);
        ip.set_traffic_class(0xb9);
        assert_eq!((ip.version_class_flow(), ip.dscp(), ip.ecn()), (0x6b9f_ffff, 46, 1));
        ip.set_flow_label(0x12345);
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0xb9, 0x12345));
        for version in 0..16 {
            ip.set_version(version);
            assert_eq!(ip.version_ok(), version == 6);
        }
    }

    #[test]
    fn a_hop_limit_of_zero_stays_zero() {
        let mut ip = Ip6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, IpProtocol::TCP, 2, 0);
        assert_eq!([(); 3].map(|()| ip.decrement_hop_limit()), [1, 0, 0]);
    }

    #[test]
    fn addresses_read_alike_as_bytes_numbers_and_addresses() {
        let (src, dst) = ("2001:db8::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let ip = Ip6Header::new(src, dst, IpProtocol::TCP, 64, 0);
        assert_eq!((ip.src_u128(), ip.dst_u128()), (src.to_bits(), dst.to_bits()));
        assert_eq!((*ip.src_bytes(), *ip.dst_bytes()), (src.octets(), dst.octets()));
        assert_eq!(ip.as_bytes()[Ip6Header::DST_AT..], dst.octets());
        assert_eq!(ip.as_bytes()[Ip6Header::NEXT_HEADER_AT], IpProtocol::TCP.0);
    }
}
