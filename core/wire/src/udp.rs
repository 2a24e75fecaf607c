//! The UDP header (RFC 768).

use std::fmt;
use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::IpProtocol;
use crate::checksum::Sum;

/// The 8-byte UDP header. `Display` is VPP's packet trace text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    src_port: U16,
    dst_port: U16,
    length: U16,
    checksum: U16,
}

impl UdpHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// A header without checksum; `length` counts header and data in bytes.
    #[inline(always)]
    pub const fn new(src_port: u16, dst_port: u16, length: u16) -> Self {
        Self {
            src_port: U16::new(src_port),
            dst_port: U16::new(dst_port),
            length: U16::new(length),
            checksum: U16::ZERO,
        }
    }

    /// Source port.
    #[inline(always)]
    pub const fn src_port(&self) -> u16 {
        self.src_port.get()
    }

    /// Destination port.
    #[inline(always)]
    pub const fn dst_port(&self) -> u16 {
        self.dst_port.get()
    }

    /// Bytes of header and data as claimed; below 8 it is a lie.
    #[inline(always)]
    pub const fn length(&self) -> u16 {
        self.length.get()
    }

    /// The checksum; 0 means "none" over IPv4.
    #[inline(always)]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the source port; the checksum is the caller's.
    #[inline(always)]
    pub fn set_src_port(&mut self, port: u16) {
        self.src_port = U16::new(port);
    }

    /// Sets the destination port; the checksum is the caller's.
    #[inline(always)]
    pub fn set_dst_port(&mut self, port: u16) {
        self.dst_port = U16::new(port);
    }

    /// Sets the length of header and data in bytes.
    #[inline(always)]
    pub fn set_length(&mut self, bytes: u16) {
        self.length = U16::new(bytes);
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }
}

impl fmt::Display for UdpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UDP: {} -> {}", self.src_port, self.dst_port)?;
        write!(f, "\n  length {}, checksum 0x{:04x}", self.length, self.checksum())
    }
}

/// The checksum of a UDP datagram (header with a zero checksum, then data) over IPv4. Never 0: that
/// would mean "none" (RFC 768).
pub fn checksum_ip4(src: Ipv4Addr, dst: Ipv4Addr, datagram: &[u8]) -> u16 {
    let mut sum = Sum::pseudo_ip4(src, dst, IpProtocol::UDP, datagram.len() as u16);
    sum.add(datagram);
    sum.finish_udp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_vpp_does() {
        assert_eq!(
            UdpHeader::new(1234, 5678, 26).to_string(),
            "UDP: 1234 -> 5678\n  length 26, checksum 0x0000"
        );
    }

    #[test]
    fn a_computed_checksum_is_never_zero() {
        // RFC 768: choose the data so that the sum is all ones.
        let (src, dst) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        let mut datagram = UdpHeader::new(0, 0, 10).as_bytes().to_vec();
        datagram.extend([0, 0]);
        let missing = checksum_ip4(src, dst, &datagram);
        datagram[8..].copy_from_slice(&missing.to_be_bytes());
        assert_eq!(checksum_ip4(src, dst, &datagram), 0xffff);
    }
}
