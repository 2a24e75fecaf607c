//! The TCP header (RFC 9293) as a router sees it: ports, flags, lengths.

use std::fmt;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The eight control bits. `Display` is VPP's: `0x12 SYN ACK`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// The sender is done.
    pub const FIN: Self = Self(0x01);
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Aborts a connection.
    pub const RST: Self = Self(0x04);
    /// Deliver at once.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    const NAMES: [&'static str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

    /// Every flag of `other` is set here.
    #[inline(always)]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Some flag of `other` is set here.
    #[inline(always)]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)?;
        for (bit, name) in Self::NAMES.iter().enumerate() {
            if self.0 >> bit & 1 != 0 {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }
}

/// The fixed 20 bytes of a TCP header. `Display` is VPP's packet trace text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    src_port: U16,
    dst_port: U16,
    seq_number: U32,
    ack_number: U32,
    data_offset: u8,
    flags: u8,
    window: U16,
    checksum: U16,
    urgent_pointer: U16,
}

impl TcpHeader {
    /// Bytes of a header without options.
    pub const LEN: usize = 20;

    /// A header without options or checksum, window 512.
    pub const fn new(src_port: u16, dst_port: u16, flags: TcpFlags) -> Self {
        Self {
            src_port: U16::new(src_port),
            dst_port: U16::new(dst_port),
            seq_number: U32::ZERO,
            ack_number: U32::ZERO,
            data_offset: 0x50,
            flags: flags.0,
            window: U16::new(512),
            checksum: U16::ZERO,
            urgent_pointer: U16::ZERO,
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

    /// Sequence number.
    #[inline(always)]
    pub const fn seq_number(&self) -> u32 {
        self.seq_number.get()
    }

    /// Acknowledgement number.
    #[inline(always)]
    pub const fn ack_number(&self) -> u32 {
        self.ack_number.get()
    }

    /// Header length in bytes as claimed: 0 to 60, valid from 20.
    #[inline(always)]
    pub const fn header_len(&self) -> usize {
        (self.data_offset >> 4) as usize * 4
    }

    /// The control bits.
    #[inline(always)]
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags(self.flags)
    }

    /// Window, not scaled.
    #[inline(always)]
    pub const fn window(&self) -> u16 {
        self.window.get()
    }

    /// The checksum over pseudo header, header and data.
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

    /// Sets sequence and acknowledgement numbers.
    #[inline(always)]
    pub fn set_numbers(&mut self, seq_number: u32, ack_number: u32) {
        self.seq_number = U32::new(seq_number);
        self.ack_number = U32::new(ack_number);
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }
}

impl fmt::Display for TcpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TCP: {} -> {}", self.src_port, self.dst_port)?;
        write!(f, "\n  seq. 0x{:08x} ack 0x{:08x}", self.seq_number(), self.ack_number())?;
        write!(f, "\n  flags {}, tcp header: {} bytes", self.flags(), self.header_len())?;
        write!(f, "\n  window {}, checksum 0x{:04x}", self.window, self.checksum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_vpp_does() {
        let mut tcp = TcpHeader::new(80, 1234, TcpFlags::SYN | TcpFlags::ACK);
        tcp.set_numbers(0x10, 0xdead_beef);
        let want = "TCP: 80 -> 1234\n  seq. 0x00000010 ack 0xdeadbeef\n  flags 0x12 SYN ACK, tcp header: 20 bytes\n  \
                    window 512, checksum 0x0000";
        assert_eq!(tcp.to_string(), want);
        assert_eq!(TcpFlags(0).to_string(), "0x00");
    }
}
