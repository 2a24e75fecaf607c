//! The IPv6 fragment header (RFC 8200 section 4.5). Where it goes in a packet is
//! [`Ip6Chain::fragmentable_at`](crate::ip6_ext::Ip6Chain::fragmentable_at).

use std::fmt;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::IpProtocol;
use crate::packet::Fragment;

/// The fragment header, for reading and writing. `Display` is in the words of VPP's IPv4 text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ip6FragmentHeader {
    next_header: u8,
    reserved: u8,
    offset_and_more: U16,
    id: U32,
}

impl Ip6FragmentHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 8;
    /// Offset of the field with the fragment offset, for the pointer of a parameter problem.
    pub const OFFSET_AT: usize = 2;

    /// A header for the fragment at `offset` bytes, rounded down to a multiple of 8.
    #[inline]
    pub const fn new(next_header: IpProtocol, offset: u16, place: Fragment, id: u32) -> Self {
        let more = matches!(place, Fragment::More) as u16;
        Self {
            next_header: next_header.0,
            reserved: 0,
            offset_and_more: U16::new(offset & !7 | more),
            id: U32::new(id),
        }
    }

    /// The first header of the fragmentable part.
    #[inline(always)]
    pub const fn next_header(&self) -> IpProtocol {
        IpProtocol(self.next_header)
    }

    /// Where the fragment belongs, in bytes, a multiple of 8.
    #[inline(always)]
    pub const fn offset(&self) -> u16 {
        self.offset_and_more.get() & !7
    }

    /// Fragments follow this one.
    #[inline(always)]
    pub const fn more_fragments(&self) -> bool {
        self.offset_and_more.get() & 1 != 0
    }

    /// Fragments of one packet share it.
    #[inline(always)]
    pub const fn id(&self) -> u32 {
        self.id.get()
    }

    /// The whole packet in one fragment: reassembled alone (RFC 6946 section 4).
    #[inline(always)]
    pub const fn is_atomic(&self) -> bool {
        self.offset_and_more.get() & !6 == 0
    }
}

impl fmt::Display for Ip6FragmentHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fragment id 0x{:08x} offset {}", self.id(), self.offset())?;
        if self.more_fragments() { f.write_str(", flags MORE_FRAGMENTS") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_header_is_read_back_as_written() {
        let header = Ip6FragmentHeader::new(IpProtocol::UDP, 1455, Fragment::More, 0x0102_0304);
        assert_eq!(header.as_bytes(), [17, 0, 5, 0xa9, 1, 2, 3, 4]);
        assert_eq!(
            (header.next_header(), header.offset(), header.id()),
            (IpProtocol::UDP, 1448, 0x0102_0304)
        );
        assert!(header.more_fragments() && !header.is_atomic());
        assert!(Ip6FragmentHeader::new(IpProtocol::UDP, 7, Fragment::Last, 1).is_atomic());
        assert_eq!(header.to_string(), "fragment id 0x01020304 offset 1448, flags MORE_FRAGMENTS");
        assert_eq!(size_of::<Ip6FragmentHeader>(), Ip6FragmentHeader::LEN);
    }
}
