//! The IPv4 header (RFC 791) without its options, which are in [`ip4_options`](crate::ip4_options).
//!
//! This file is on the hot path of every routed packet: getters are single loads, the checksum is
//! two wide adds and a fold, the TTL costs one add to the checksum.

use std::fmt;
use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::IpProtocol;
use crate::checksum::{Sum, fold, update_u16, update_u32};

/// The fixed 20 bytes of an IPv4 header. `Display` is VPP's packet trace text, without the layer
/// above; use [`describe_ip4`](crate::describe_ip4) for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ip4Header {
    version_ihl: u8,
    tos: u8,
    total_length: U16,
    id: U16,
    flags_and_fragment_offset: U16,
    ttl: u8,
    protocol: u8,
    checksum: U16,
    src: [u8; 4],
    dst: [u8; 4],
}

/// The header as the checksum reads it.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Words {
    wide: [[u8; 8]; 2],
    last: [u8; 4],
}

/// Ones' complement addition of 64-bit numbers.
#[inline(always)]
const fn add_carry(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u64
}

impl Ip4Header {
    /// Bytes of a header without options.
    pub const LEN: usize = 20;
    /// Bytes of the longest header: an IHL of 15 words.
    pub const MAX_LEN: usize = 60;
    /// The first byte of a header of version 4 without options.
    pub const VERSION_IHL_NO_OPTIONS: u8 = 0x45;
    /// Flag in [`flags_and_fragment_offset`](Self::flags_and_fragment_offset): may not be fragmented.
    pub const DONT_FRAGMENT: u16 = 0x4000;
    /// Flag: fragments follow.
    pub const MORE_FRAGMENTS: u16 = 0x2000;
    /// Flag: reserved by RFC 791; VPP prints it as `CONGESTION`.
    pub const CONGESTION: u16 = 0x8000;

    /// A header without options and with a right checksum. `total_length` counts header and payload.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: IpProtocol, ttl: u8, total_length: u16) -> Self {
        let mut header = Self {
            version_ihl: Self::VERSION_IHL_NO_OPTIONS,
            tos: 0,
            total_length: U16::new(total_length),
            id: U16::ZERO,
            flags_and_fragment_offset: U16::ZERO,
            ttl,
            protocol: protocol.0,
            checksum: U16::ZERO,
            src: src.octets(),
            dst: dst.octets(),
        };
        header.update_checksum();
        header
    }

    /// Version and header length in one byte: compare it with [`VERSION_IHL_NO_OPTIONS`](Self::VERSION_IHL_NO_OPTIONS).
    #[inline(always)]
    pub const fn version_ihl(&self) -> u8 {
        self.version_ihl
    }

    /// IP version, 4 when the packet tells the truth.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Header length in bytes as claimed: 0 to 60, valid from 20.
    #[inline(always)]
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 0xf) as usize * 4
    }

    /// The type-of-service byte: DSCP and ECN.
    #[inline(always)]
    pub const fn tos(&self) -> u8 {
        self.tos
    }

    /// Differentiated services code point, 0 to 63 (RFC 2474).
    #[inline(always)]
    pub const fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// Explicit congestion notification, 0 to 3 (RFC 3168).
    #[inline(always)]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }

    /// Bytes of header and payload as claimed.
    #[inline(always)]
    pub const fn total_length(&self) -> u16 {
        self.total_length.get()
    }

    /// Identification: fragments of one packet share it.
    #[inline(always)]
    pub const fn id(&self) -> u16 {
        self.id.get()
    }

    /// The three flags and the 13-bit offset, as on the wire.
    #[inline(always)]
    pub const fn flags_and_fragment_offset(&self) -> u16 {
        self.flags_and_fragment_offset.get()
    }

    /// Fragment offset in bytes, a multiple of 8.
    #[inline(always)]
    pub const fn fragment_offset(&self) -> u16 {
        (self.flags_and_fragment_offset.get() & 0x1fff) << 3
    }

    /// May not be fragmented.
    #[inline(always)]
    pub const fn dont_fragment(&self) -> bool {
        self.flags_and_fragment_offset.get() & Self::DONT_FRAGMENT != 0
    }

    /// Fragments follow this one.
    #[inline(always)]
    pub const fn more_fragments(&self) -> bool {
        self.flags_and_fragment_offset.get() & Self::MORE_FRAGMENTS != 0
    }

    /// One of several fragments: more follow, or the offset is not zero.
    #[inline(always)]
    pub const fn is_fragment(&self) -> bool {
        self.flags_and_fragment_offset.get() & 0x3fff != 0
    }

    /// Time to live, in hops.
    #[inline(always)]
    pub const fn ttl(&self) -> u8 {
        self.ttl
    }

    /// The protocol of the payload.
    #[inline(always)]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.protocol)
    }

    /// The header checksum.
    #[inline(always)]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Source address.
    #[inline(always)]
    pub const fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.src)
    }

    /// Destination address.
    #[inline(always)]
    pub const fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.dst)
    }

    /// Source address as on the wire.
    #[inline(always)]
    pub const fn src_bytes(&self) -> &[u8; 4] {
        &self.src
    }

    /// Destination address as on the wire.
    #[inline(always)]
    pub const fn dst_bytes(&self) -> &[u8; 4] {
        &self.dst
    }

    /// Source address as a number in host order, for tables.
    #[inline(always)]
    pub const fn src_u32(&self) -> u32 {
        u32::from_be_bytes(self.src)
    }

    /// Destination address as a number in host order, for tables.
    #[inline(always)]
    pub const fn dst_u32(&self) -> u32 {
        u32::from_be_bytes(self.dst)
    }

    /// Sets version and header length. No setter but [`decrement_ttl`](Self::decrement_ttl) and the
    /// `rewrite_` ones touches the checksum.
    #[inline(always)]
    pub const fn set_version_ihl(&mut self, version_ihl: u8) {
        self.version_ihl = version_ihl;
    }

    /// Sets DSCP and ECN.
    #[inline(always)]
    pub const fn set_tos(&mut self, tos: u8) {
        self.tos = tos;
    }

    /// Sets the length of header and payload in bytes.
    #[inline(always)]
    pub fn set_total_length(&mut self, bytes: u16) {
        self.total_length = U16::new(bytes);
    }

    /// Sets the identification.
    #[inline(always)]
    pub fn set_id(&mut self, id: u16) {
        self.id = U16::new(id);
    }

    /// Sets flags and offset as on the wire.
    #[inline(always)]
    pub fn set_flags_and_fragment_offset(&mut self, value: u16) {
        self.flags_and_fragment_offset = U16::new(value);
    }

    /// Sets the time to live.
    #[inline(always)]
    pub const fn set_ttl(&mut self, ttl: u8) {
        self.ttl = ttl;
    }

    /// Sets the protocol.
    #[inline(always)]
    pub const fn set_protocol(&mut self, protocol: IpProtocol) {
        self.protocol = protocol.0;
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Sets the source address.
    #[inline(always)]
    pub const fn set_src(&mut self, addr: Ipv4Addr) {
        self.src = addr.octets();
    }

    /// Sets the destination address.
    #[inline(always)]
    pub const fn set_dst(&mut self, addr: Ipv4Addr) {
        self.dst = addr.octets();
    }

    /// The ones' complement sum of the 20 bytes in machine order, folded to 64 bits.
    #[inline(always)]
    fn sum(&self) -> u64 {
        // Two wide adds with end-around carry. Five adds of 32 bits would be vectorised, with a
        // horizontal sum: 18 instructions instead of 15 (rustc 1.95, x86-64-v3), not timed.
        let words: &Words = zerocopy::transmute_ref!(self);
        let [first, second] = words.wide.map(u64::from_ne_bytes);
        let (sum, carry) = first.overflowing_add(second);
        add_carry(sum, u64::from(u32::from_ne_bytes(words.last)) + u64::from(carry))
    }

    /// Whether the checksum of a header *without options* is right (RFC 1071); for one with options
    /// see [`checksum_ok_with`](Self::checksum_ok_with).
    #[inline(always)]
    pub fn checksum_ok(&self) -> bool {
        // The sum of 64-bit words is right if it is a multiple of 0xffff, as each of the 16-bit numbers in it counts
        // as much: 2^16 is 1 more than such a multiple. Of those, and of no other number, the product below is one of
        // the greatest; of a header of zeroes, which has no sum that is right, it is 0.
        const ONES: u64 = u64::MAX / 0xffff;
        self.sum().wrapping_mul(ONES) >= ONES.wrapping_neg()
    }

    /// Whether the checksum over this header and its `options` (the bytes up to
    /// [`header_len`](Self::header_len)) is right.
    #[inline]
    pub fn checksum_ok_with(&self, options: &[u8]) -> bool {
        self.sum_with(options).folded() == 0xffff
    }

    fn sum_with(&self, options: &[u8]) -> Sum {
        let mut sum = Sum::new();
        sum.add(self.as_bytes());
        sum.add(options);
        sum
    }

    /// The checksum that belongs into this header without options.
    #[inline(always)]
    pub fn compute_checksum(&self) -> u16 {
        let mut header = *self;
        header.checksum = U16::ZERO;
        u16::from_be(!fold(header.sum()))
    }

    /// The checksum that belongs into this header with `options`.
    pub fn compute_checksum_with(&self, options: &[u8]) -> u16 {
        let mut header = *self;
        header.checksum = U16::ZERO;
        header.sum_with(options).finish()
    }

    /// Writes the right checksum into a header without options.
    #[inline(always)]
    pub fn update_checksum(&mut self) {
        self.checksum = U16::new(self.compute_checksum());
    }

    /// Takes one hop off the TTL, keeps the checksum as right (or wrong) as it was, and returns the
    /// new TTL. A TTL of 0 stays 0: the caller drops packets whose TTL is below 2 (RFC 1812 section 5.3.1).
    #[inline(always)]
    pub fn decrement_ttl(&mut self) -> u8 {
        self.decrement_ttl_from(self.ttl)
    }

    /// The same for a caller that has just read the TTL and knows what it is not.
    #[inline(always)]
    pub fn decrement_ttl_from(&mut self, ttl: u8) -> u8 {
        // RFC 1624 equation 3 for a word that shrinks by 0x0100: the checksum grows by as much, with
        // end-around carry. Without a branch: a TTL of 0 adds nothing.
        // In the machine's byte order, in which ones' complement sums come out the same.
        let step = u8::from(ttl != 0);
        self.ttl = ttl - step;
        let checksum = u32::from(u16::from_ne_bytes(self.checksum.to_bytes()))
            + u32::from(u16::from_ne_bytes([step, 0]));
        let checksum = checksum + u32::from(checksum >= 0xffff && step != 0);
        self.checksum = U16::from_bytes((checksum as u16).to_ne_bytes());
        self.ttl
    }

    /// Replaces the source address and updates the checksum incrementally (NAT).
    #[inline(always)]
    pub fn rewrite_src(&mut self, addr: Ipv4Addr) {
        let new = update_u32(self.checksum(), self.src_u32(), addr.to_bits());
        self.src = addr.octets();
        self.checksum = U16::new(new);
    }

    /// Replaces the destination address and updates the checksum incrementally (NAT).
    #[inline(always)]
    pub fn rewrite_dst(&mut self, addr: Ipv4Addr) {
        let new = update_u32(self.checksum(), self.dst_u32(), addr.to_bits());
        self.dst = addr.octets();
        self.checksum = U16::new(new);
    }

    /// Replaces the DSCP and ECN byte and updates the checksum incrementally.
    #[inline(always)]
    pub fn rewrite_tos(&mut self, tos: u8) {
        let word = |tos| u16::from_be_bytes([self.version_ihl, tos]);
        let new = update_u16(self.checksum(), word(self.tos), word(tos));
        self.tos = tos;
        self.checksum = U16::new(new);
    }

    /// Writes VPP's text; `options` is `None` when they were cut off, so that the checksum cannot be judged.
    pub(crate) fn fmt_with(&self, f: &mut fmt::Formatter<'_>, options: Option<&[u8]>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.protocol(), self.src(), self.dst())?;
        if self.version_ihl != Self::VERSION_IHL_NO_OPTIONS {
            write!(f, "\n  version {}, header length {}", self.version(), self.header_len())?;
        }
        write!(
            f,
            "\n  tos 0x{:02x}, ttl {}, length {}, checksum 0x{:04x}",
            self.tos,
            self.ttl,
            self.total_length(),
            self.checksum()
        )?;
        if let Some(options) = options
            && !self.checksum_ok_with(options)
        {
            write!(f, " (should be 0x{:04x})", self.compute_checksum_with(options))?;
        }
        write!(f, " dscp {} ecn {}", dscp_name(self.dscp()), ecn_name(self.ecn()))?;
        write!(f, "\n  fragment id 0x{:04x}", self.id())?;
        if self.fragment_offset() != 0 {
            write!(f, " offset {}", self.fragment_offset())?;
        }
        let flags = self.flags_and_fragment_offset();
        let mut separator = ", flags ";
        for (bit, name) in [
            (Self::MORE_FRAGMENTS, "MORE_FRAGMENTS"),
            (Self::DONT_FRAGMENT, "DONT_FRAGMENT"),
            (Self::CONGESTION, "CONGESTION"),
        ] {
            if flags & bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}

impl fmt::Display for Ip4Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let without_options = self.header_len() == Self::LEN;
        self.fmt_with(f, without_options.then_some(&[]))
    }
}

/// VPP's name of a code point (RFC 2474, RFC 2597, RFC 3246), `unknown` for the others.
pub const fn dscp_name(dscp: u8) -> &'static str {
    match dscp {
        0 => "CS0",
        8 => "CS1",
        10 => "AF11",
        12 => "AF12",
        14 => "AF13",
        16 => "CS2",
        18 => "AF21",
        20 => "AF22",
        22 => "AF23",
        24 => "CS3",
        26 => "AF31",
        28 => "AF32",
        30 => "AF33",
        32 => "CS4",
        34 => "AF41",
        36 => "AF42",
        38 => "AF43",
        40 => "CS5",
        46 => "EF",
        48 => "CS6",
        56 => "CS7",
        _ => "unknown",
    }
}

/// VPP's name of an ECN value (RFC 3168 section 5); only the low two bits count.
pub const fn ecn_name(ecn: u8) -> &'static str {
    match ecn & 3 {
        0 => "NON_ECN",
        1 => "ECT_1",
        2 => "ECT_0",
        _ => "CE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

    fn header() -> Ip4Header {
        let mut ip = Ip4Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), IpProtocol::UDP, 64, 46);
        ip.set_flags_and_fragment_offset(Ip4Header::DONT_FRAGMENT);
        ip.update_checksum();
        ip
    }

    #[test]
    fn checks_the_checksum_of_a_real_header() {
        let bytes = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01,
            0xc0, 0xa8, 0x00, 0xc7,
        ];
        let mut ip = Ip4Header::read_from_bytes(&bytes).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!(ip.compute_checksum(), 0xb861);
        ip.set_ttl(63);
        assert!(!ip.checksum_ok());
    }

    #[test]
    fn of_all_checksums_one_is_right() {
        for id in [0, 1, 0x1234, 0x8000, 0xfffe, 0xffff] {
            let mut ip = header();
            ip.set_id(id);
            ip.update_checksum();
            let right = ip.checksum();
            for checksum in 0..=u16::MAX {
                ip.set_checksum(checksum);
                // Ones' complement has two zeroes.
                let same =
                    checksum == right || [checksum, right] == [0xffff, 0] || [checksum, right] == [0, 0xffff];
                assert_eq!(ip.checksum_ok(), same, "id {id}, checksum {checksum}");
                assert_eq!(ip.checksum_ok(), ip.checksum_ok_with(&[]), "id {id}, checksum {checksum}");
            }
        }
    }

    #[test]
    fn sums_with_many_carries_are_judged_as_by_16_bit_words() {
        let mut state = 1u64;
        for n in 0..100_000 {
            let mut bytes = [0; 20];
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Many are 0xff and 0.
                *byte = [(state >> 56) as u8, 0xff, 0xff, 0][(state >> 40) as usize % 4];
            }
            let mut ip = Ip4Header::read_from_bytes(&bytes).unwrap();
            if n % 2 == 0 {
                ip.update_checksum();
            }
            let sum = bytes.as_chunks::<2>().0.iter().map(|word| u64::from(u16::from_be_bytes(*word)));
            let right = n % 2 == 0 || sum.clone().sum::<u64>() % 0xffff == 0;
            assert_eq!(ip.checksum_ok(), right && ip.as_bytes() != [0; 20], "{bytes:02x?}");
        }
        let zero = Ip4Header::read_from_bytes(&[0; 20]).unwrap();
        assert!(!zero.checksum_ok() && !zero.checksum_ok_with(&[]));
    }

    #[test]
    fn decrementing_the_ttl_equals_a_full_recomputation() {
        // RFC 1624: every TTL with every id covers each checksum, 0x0000 and the carries included.
        for id in 0..=u16::MAX {
            let mut ip = header();
            ip.set_id(id);
            ip.set_ttl((id % 255 + 1) as u8);
            ip.update_checksum();
            let ttl = ip.ttl();
            assert_eq!(ip.decrement_ttl(), ttl - 1);
            assert!(ip.checksum_ok());
            assert_eq!(ip.checksum(), ip.compute_checksum(), "id {id}");
        }
    }

    #[test]
    fn a_ttl_of_zero_stays_zero_and_its_checksum_right() {
        let mut ip = header();
        ip.set_ttl(0);
        ip.update_checksum();
        let before = ip;
        assert_eq!(ip.decrement_ttl(), 0);
        assert_eq!(ip, before);
    }

    #[test]
    fn rewriting_keeps_the_checksum_right() {
        let mut ip = header();
        ip.rewrite_src([192, 0, 2, 255].into());
        ip.rewrite_dst([255, 255, 0, 0].into());
        ip.rewrite_tos(0xb8);
        assert!(ip.checksum_ok());
        assert_eq!(ip.checksum(), ip.compute_checksum());
        assert_eq!(ip.checksum(), checksum::checksum(Ip4Header { checksum: U16::ZERO, ..ip }.as_bytes()));
    }

    #[test]
    fn prints_as_vpp_does() {
        let ip = header();
        let want = format!(
            "UDP: 10.0.0.1 -> 10.0.0.2\n  tos 0x00, ttl 64, length 46, checksum 0x{:04x} dscp CS0 ecn NON_ECN\n  \
             fragment id 0x0000, flags DONT_FRAGMENT",
            ip.checksum()
        );
        assert_eq!(ip.to_string(), want);
    }

    #[test]
    fn prints_what_is_wrong_and_what_it_should_be() {
        let mut ip = header();
        let right = ip.checksum();
        ip.set_checksum(right ^ 1);
        assert!(ip.to_string().contains(&format!(" (should be 0x{right:04x}) dscp")), "{ip}");
        ip.set_version_ihl(0x62);
        assert!(ip.to_string().contains("\n  version 6, header length 8\n"), "{ip}");
        ip.set_flags_and_fragment_offset(Ip4Header::MORE_FRAGMENTS | 0xb9);
        assert!(ip.to_string().ends_with("fragment id 0x0000 offset 1480, flags MORE_FRAGMENTS"), "{ip}");
    }
}
