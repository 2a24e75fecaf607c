//! The ten bytes, and what they mean once they have been checked against their frame.

use std::num::NonZeroU16;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian::U16};

use crate::bytes::{copy_out, total};

/// Size of [`VnetHdr`]. The 12-byte form adds `num_buffers`, which only mergeable receive buffers
/// (vhost) use; AF_PACKET and TAP fill ten, so ten it is everywhere.
pub const VNET_HDR_LEN: usize = 10;

const F_NEEDS_CSUM: u8 = 1;
const F_DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// `struct virtio_net_hdr` (virtio 1.2, 5.1.6), little-endian. Raw: [`VnetHdr::validate`] it before use.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct VnetHdr {
    /// Bit 0: the checksum is still to be computed; bit 1: the checksum has been verified.
    pub flags: u8,
    /// 0 none, 1 TCP over IPv4, 4 TCP over IPv6, 5 UDP; bit 7 adds ECN.
    pub gso_type: u8,
    /// The sender's idea of the length of all headers, in bytes: a hint that is never trusted.
    pub hdr_len: U16,
    /// Payload bytes in each segment of a superframe.
    pub gso_size: U16,
    /// Byte from which the checksum runs: the transport header.
    pub csum_start: U16,
    /// Where the checksum field lies, in bytes after `csum_start`.
    pub csum_offset: U16,
}

/// What is known about the transport checksum of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Csum {
    /// Nothing: the checksum in the frame is as it came from the wire.
    #[default]
    Unknown,
    /// The peer vouches for it; it need not be verified.
    Valid,
    /// Not computed yet: the field at `start + offset` holds the pseudo-header's sum.
    Partial {
        /// First byte that is summed.
        start: u16,
        /// The field, counted from `start`.
        offset: u16,
    },
}

/// Which protocol a superframe carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over either: each segment becomes a datagram.
    Udp,
}

/// A superframe and how to cut it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Protocol.
    pub kind: GsoKind,
    /// Payload bytes per segment.
    pub size: NonZeroU16,
    /// Bytes of all headers, computed from the frame, never taken from `hdr_len`.
    pub header_len: u16,
    /// CWR is to be set on the first segment only (RFC 3168 6.1.2).
    pub ecn: bool,
}

/// A checked [`VnetHdr`]: every offset lies inside the frame it was validated against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// State of the transport checksum.
    pub csum: Csum,
    /// Present for a superframe; then `csum` is always [`Csum::Partial`].
    pub gso: Option<Gso>,
}

/// Why a header, or the frame behind it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VnetError {
    /// The checksum field is not inside the frame.
    #[error("checksum field at {start}+{offset} is outside a frame of {len} bytes")]
    CsumBeyondFrame {
        /// `csum_start`.
        start: usize,
        /// `csum_offset`.
        offset: usize,
        /// Frame length in bytes.
        len: usize,
    },
    /// A `gso_type` that is not one of 0, 1, 4, 5.
    #[error("unknown or unsupported GSO type {0}")]
    UnknownGso(u8),
    /// A superframe with segments of zero bytes.
    #[error("GSO with a segment size of 0")]
    ZeroGsoSize,
    /// A superframe whose checksum is not left to the device; virtio 1.2, 5.1.6.2 forbids it.
    #[error("GSO without a partial checksum")]
    GsoWithoutCsum,
    /// Headers of a superframe that end outside it, or are not the protocol its type names.
    #[error("superframe headers do not match GSO type {kind:?}")]
    BadHeaders {
        /// What the header claims.
        kind: GsoKind,
    },
    /// The caller's buffer cannot hold one segment.
    #[error("a segment needs {need} bytes, the buffer has {have}")]
    BufferTooSmall {
        /// Bytes of a full segment.
        need: usize,
        /// Bytes given.
        have: usize,
    },
}

impl VnetHdr {
    /// Checks the header against the frame that came with it (`segs`, all of the frame).
    ///
    /// A truncated superframe passes as long as its headers are inside; the caller drops truncated
    /// frames by the ring's own lengths.
    pub fn validate(&self, segs: &[impl AsRef<[u8]>]) -> Result<Offload, VnetError> {
        // Almost every frame on a router owes nothing: leave before touching the segments.
        if self.flags == 0 && self.gso_type == GSO_NONE {
            return Ok(Offload::default());
        }
        let csum = self.checked_csum(total(segs))?;
        let kind = match self.gso_type & !GSO_ECN {
            GSO_NONE => return Ok(Offload { csum, gso: None }),
            GSO_TCPV4 => GsoKind::Tcp4,
            GSO_TCPV6 => GsoKind::Tcp6,
            GSO_UDP_L4 => GsoKind::Udp,
            other => return Err(VnetError::UnknownGso(other)),
        };
        let size = NonZeroU16::new(self.gso_size.get()).ok_or(VnetError::ZeroGsoSize)?;
        let Csum::Partial { start, offset } = csum else { return Err(VnetError::GsoWithoutCsum) };
        let bad = VnetError::BadHeaders { kind };
        let transport_len = match (kind, offset) {
            (GsoKind::Udp, 6) => 8,
            (GsoKind::Tcp4 | GsoKind::Tcp6, 16) => {
                let mut byte = [0];
                copy_out(segs, usize::from(start) + 12, &mut byte).ok_or(bad)?;
                u16::from(byte[0] >> 4) * 4
            }
            _ => return Err(bad),
        };
        let header_len = start.checked_add(transport_len).ok_or(bad)?;
        let too_short = kind != GsoKind::Udp && transport_len < 20;
        if too_short || usize::from(header_len) > total(segs) {
            return Err(bad);
        }
        let ecn = self.gso_type & GSO_ECN != 0;
        Ok(Offload { csum, gso: Some(Gso { kind, size, header_len, ecn }) })
    }

    fn checked_csum(&self, len: usize) -> Result<Csum, VnetError> {
        if self.flags & F_NEEDS_CSUM == 0 {
            return Ok(if self.flags & F_DATA_VALID == 0 { Csum::Unknown } else { Csum::Valid });
        }
        let (start, offset) = (self.csum_start.get(), self.csum_offset.get());
        if usize::from(start) + usize::from(offset) + 2 > len {
            return Err(VnetError::CsumBeyondFrame { start: start.into(), offset: offset.into(), len });
        }
        Ok(Csum::Partial { start, offset })
    }

    /// The same header for a frame whose front grew (`+`) or shrank (`-`) by `delta` bytes, for instance
    /// by a VLAN tag or a rewritten link layer. Offsets that would leave the 16-bit range become an error
    /// of the kernel's, not a wrong checksum: they saturate beyond any frame.
    pub fn shifted(&self, delta: i32) -> Self {
        let shift = |v: U16| U16::new(u16::try_from(i32::from(v.get()) + delta).unwrap_or(u16::MAX));
        let mut hdr = *self;
        if self.flags & F_NEEDS_CSUM != 0 {
            hdr.csum_start = shift(self.csum_start);
        }
        if self.gso_type != GSO_NONE {
            hdr.hdr_len = shift(self.hdr_len);
        }
        hdr
    }
}

impl From<Offload> for VnetHdr {
    /// The header to send with a frame that still owes `offload`.
    fn from(offload: Offload) -> Self {
        let mut hdr = Self::default();
        match offload.csum {
            Csum::Unknown => {}
            Csum::Valid => hdr.flags = F_DATA_VALID,
            Csum::Partial { start, offset } => {
                hdr.flags = F_NEEDS_CSUM;
                hdr.csum_start = U16::new(start);
                hdr.csum_offset = U16::new(offset);
            }
        }
        if let Some(gso) = offload.gso {
            hdr.gso_type = match gso.kind {
                GsoKind::Tcp4 => GSO_TCPV4,
                GsoKind::Tcp6 => GSO_TCPV6,
                GsoKind::Udp => GSO_UDP_L4,
            } | if gso.ecn { GSO_ECN } else { 0 };
            hdr.gso_size = U16::new(gso.size.get());
            hdr.hdr_len = U16::new(gso.header_len);
        }
        hdr
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp4(len: usize) -> (VnetHdr, Vec<u8>) {
        let mut frame = vec![0u8; len];
        frame[34 + 12] = 0x80; // data offset: 32 bytes
        let hdr = VnetHdr {
            flags: F_NEEDS_CSUM,
            gso_type: GSO_TCPV4,
            hdr_len: 66.into(),
            gso_size: 1448.into(),
            csum_start: 34.into(),
            csum_offset: 16.into(),
        };
        (hdr, frame)
    }

    #[test]
    fn a_superframe_header_survives_the_round_trip() {
        let (hdr, frame) = tcp4(9000);
        let offload = hdr.validate(&[&frame]).unwrap();
        assert_eq!(offload.gso.unwrap().header_len, 66);
        assert_eq!(VnetHdr::from(offload), hdr);
    }

    #[test]
    fn a_lying_header_length_is_replaced_by_the_real_one() {
        for lie in [0, 1, 65535] {
            let (mut hdr, frame) = tcp4(9000);
            hdr.hdr_len = lie.into();
            assert_eq!(hdr.validate(&[&frame]).unwrap().gso.unwrap().header_len, 66);
        }
    }

    #[test]
    fn refuses_a_checksum_field_beyond_the_frame() {
        let (mut hdr, frame) = tcp4(9000);
        hdr.csum_start = 65535.into();
        hdr.csum_offset = 65535.into();
        assert!(matches!(hdr.validate(&[&frame]), Err(VnetError::CsumBeyondFrame { .. })));
    }

    #[test]
    fn refuses_a_segment_size_of_zero() {
        let (mut hdr, frame) = tcp4(9000);
        hdr.gso_size = 0.into();
        assert_eq!(hdr.validate(&[&frame]), Err(VnetError::ZeroGsoSize));
    }

    #[test]
    fn refuses_gso_whose_checksum_is_already_there() {
        let (mut hdr, frame) = tcp4(9000);
        hdr.flags = 0;
        assert_eq!(hdr.validate(&[&frame]), Err(VnetError::GsoWithoutCsum));
    }

    #[test]
    fn refuses_unknown_gso_types() {
        let (mut hdr, frame) = tcp4(9000);
        for kind in [2, 3, 6, 0x7f] {
            hdr.gso_type = kind;
            assert_eq!(hdr.validate(&[&frame]), Err(VnetError::UnknownGso(kind)));
        }
    }

    #[test]
    fn refuses_a_tcp_header_that_is_too_short_or_ends_outside() {
        let (hdr, mut frame) = tcp4(9000);
        frame[34 + 12] = 0x40;
        let bad = VnetError::BadHeaders { kind: GsoKind::Tcp4 };
        assert_eq!(hdr.validate(&[&frame]), Err(bad));
        frame[34 + 12] = 0xf0;
        assert_eq!(hdr.validate(&[&frame[..80]]), Err(bad));
    }

    #[test]
    fn a_removed_vlan_tag_moves_the_offsets() {
        let (hdr, _) = tcp4(100);
        assert_eq!(hdr.shifted(4).csum_start.get(), 38);
        assert_eq!(hdr.shifted(-4).hdr_len.get(), 62);
        assert_eq!(hdr.shifted(-40).csum_start.get(), u16::MAX);
    }

    proptest! {
        #[test]
        fn whatever_validates_lies_inside_the_frame(raw in any::<[u8; 10]>(), frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            let hdr = VnetHdr::read_from_bytes(&raw).unwrap();
            if let Ok(offload) = hdr.validate(&[&frame]) {
                if let Csum::Partial { start, offset } = offload.csum {
                    prop_assert!(usize::from(start) + usize::from(offset) + 2 <= frame.len());
                }
                if let Some(gso) = offload.gso {
                    prop_assert!(usize::from(gso.header_len) <= frame.len());
                }
            }
        }
    }
}
