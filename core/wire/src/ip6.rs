//! The IPv6 header (RFC 8200). Extension headers are not here yet.

use std::fmt;
use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::IpProtocol;

/// The 40-byte IPv6 header. `Display` is VPP's packet trace text.
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

    /// Flow label, 20 bits (RFC 6437).
    #[inline(always)]
    pub const fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
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
}
