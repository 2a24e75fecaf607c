//! The 18 bytes by which a frame of the lab is known again.
//!
//! `IDENTIFY` (8), trial (2), direction and stream (1), flags (1), sequence (6), big-endian. The magic is siitperf's, so its
//! receivers count these frames too; the flags' top bit tells them from siitperf's own, whose next bytes are 0, 1, 2, 3.

use shoal_lab_plan::{Side, Tag};

/// The first bytes of each tag, signed or plain.
pub const MAGIC: [u8; 8] = *b"IDENTIFY";
/// Bytes of a signed tag.
pub const SIGNED_LEN: usize = 18;
/// Bytes of a plain tag.
pub const PLAIN_LEN: usize = 8;
/// The flag that each signed tag has.
pub const SIGNED_FLAG: u8 = 0x80;
/// The largest sequence number; the next is 0 again.
pub const LAST_SEQUENCE: u64 = (1 << 48) - 1;
/// The largest number of a stream.
pub const LAST_STREAM: u8 = 0x7f;

/// The bit of the stream's byte that says "sent at the right".
const FROM_RIGHT: u8 = 0x80;

/// What a signed tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub trial: u16,
    pub from: Side,
    pub stream: u8,
    pub sequence: u64,
}

impl Signature {
    /// The tag's bytes.
    pub(crate) fn bytes(self) -> [u8; SIGNED_LEN] {
        let [trial_high, trial_low] = self.trial.to_be_bytes();
        let side = if self.from == Side::Right { FROM_RIGHT } else { 0 };
        let [_, _, s0, s1, s2, s3, s4, s5] = self.sequence.to_be_bytes();
        let [m0, m1, m2, m3, m4, m5, m6, m7] = MAGIC;
        let head = [m0, m1, m2, m3, m4, m5, m6, m7, trial_high, trial_low, side | self.stream, SIGNED_FLAG];
        let mut bytes = [0; SIGNED_LEN];
        for (to, from) in bytes.iter_mut().zip(head.into_iter().chain([s0, s1, s2, s3, s4, s5])) {
            *to = from;
        }
        bytes
    }

    /// Reads the ten bytes behind the magic; `None` if they are no signed tag's.
    #[inline]
    pub(crate) fn read(bytes: &[u8; 10]) -> Option<Signature> {
        let [t0, t1, stream, flags, s0, s1, s2, s3, s4, s5] = *bytes;
        if flags & SIGNED_FLAG == 0 {
            return None;
        }
        Some(Signature {
            trial: u16::from_be_bytes([t0, t1]),
            from: if stream & FROM_RIGHT == 0 { Side::Left } else { Side::Right },
            stream: stream & LAST_STREAM,
            sequence: u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]),
        })
    }
}

/// The magic at `offset`, if it is there.
#[inline]
pub(crate) fn has_magic(frame: &[u8], offset: usize) -> bool {
    frame.get(offset..offset + PLAIN_LEN).is_some_and(|bytes| bytes == MAGIC)
}

/// What stands at `offset` of `frame` if it is a signed tag.
#[inline]
pub(crate) fn signature(frame: &[u8], offset: usize) -> Option<Signature> {
    let bytes = frame.get(offset + PLAIN_LEN..offset + SIGNED_LEN)?;
    Signature::read(bytes.try_into().ok()?)
}

/// Offset and length of a tag, if there is one.
pub(crate) fn extent(tag: Tag) -> Option<(usize, usize)> {
    match tag {
        Tag::Signed { offset } => Some((usize::from(offset), SIGNED_LEN)),
        Tag::Plain { offset } => Some((usize::from(offset), PLAIN_LEN)),
        Tag::None => None,
    }
}
