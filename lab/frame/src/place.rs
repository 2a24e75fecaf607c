//! A place of a frame that changes, made ready for the hot path.

use std::ops::Range;

use shoal_lab_plan::{Digit, Write};

use crate::error::FrameError;
use crate::layout::Layout;
use crate::sum;

/// What a [`Write`] does to the frame and to its checksums.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    offset: usize,
    width: u8,
    /// The first frame has zeros here and nothing else writes here: what is written is what changes.
    alone: bool,
    digit: Option<Digit>,
    add: u64,
    shift: i8,
    /// Bits to the right that a byte of a split field leaves away.
    drop: u8,
    mask: u64,
    /// 8 if the field ends in the upper half of a checksum's word.
    weight: u32,
    /// All ones if the field is summed into the IPv4 header's checksum, else 0.
    in_ip4: u64,
    /// The same for the transport's checksum.
    in_l4: u64,
}

impl Place {
    /// The places of `write` in `frame`: one, or one for each byte where a field lies partly in a checksum's bytes.
    /// `kept` are the offsets of checksums that are kept right.
    ///
    /// # Errors
    ///
    /// An odd width, a place outside of the frame or on a kept checksum, a digit that does not exist.
    pub(crate) fn of(
        write: &Write,
        frame: &[u8],
        layout: Option<&Layout>,
        kept: &[usize],
    ) -> Result<Vec<Place>, FrameError> {
        let width = usize::from(write.width);
        if !matches!(width, 1 | 2 | 4 | 8) {
            let nearest = [1_u8, 2, 4, 8].into_iter().min_by_key(|w| w.abs_diff(write.width)).unwrap_or(8);
            return Err(FrameError::Width(write.width, nearest));
        }
        let offset = usize::from(write.offset);
        if offset + width > frame.len() {
            return Err(FrameError::Offset {
                what: format!("a field of {width} bytes"),
                offset: write.offset,
                len: frame.len(),
                nearest: frame.len().saturating_sub(width),
            });
        }
        if let Some(checksum) = kept.iter().find(|c| offset < **c + 2 && **c < offset + width) {
            let (offset, checksum) = (write.offset, *checksum);
            return Err(FrameError::OnChecksum { offset, checksum, nearest: checksum + 2 });
        }
        if let Some(Digit { divide, of }) = write.digit
            && (divide == 0 || of == 0)
        {
            return Err(FrameError::Digit { divide, of });
        }
        let belongs: Vec<_> = (offset..offset + width).map(|at| belongs(layout, at)).collect();
        if let [first, rest @ ..] = belongs.as_slice()
            && rest.iter().all(|b| b == first)
        {
            return Ok(vec![Self::piece(write, offset, write.width, 0, *first)]);
        }
        let pieces = belongs.iter().enumerate();
        Ok(pieces
            .map(|(i, belongs)| Self::piece(write, offset + i, 1, 8 * (width - 1 - i) as u8, *belongs))
            .collect())
    }

    fn piece(write: &Write, offset: usize, width: u8, drop: u8, (in_ip4, in_l4): (bool, bool)) -> Place {
        let all = u64::MAX >> (64 - 8 * u32::from(width));
        Place {
            offset,
            width,
            alone: false,
            digit: write.digit,
            add: write.add as u64,
            shift: write.shift,
            drop,
            mask: (write.mask >> drop) & all,
            // Headers begin at even offsets, so a field's place in the frame tells its place in the words of a sum.
            weight: if (offset + usize::from(width)).is_multiple_of(2) { 0 } else { 8 },
            in_ip4: if in_ip4 { u64::MAX } else { 0 },
            in_l4: if in_l4 { u64::MAX } else { 0 },
        }
    }

    /// Makes the places that fill their whole field, and share it with no other, ready for the short way: their bytes in the
    /// first frame become zeros.
    pub(crate) fn prepare(changes: &mut [&mut Place], frame: &mut [u8]) {
        for i in 0..changes.len() {
            let Some(place) = changes.get(i) else { continue };
            let bytes = place.bytes();
            let shared = changes.iter().enumerate().any(|(j, other)| {
                let others = other.bytes();
                j != i && others.start < bytes.end && bytes.start < others.end
            });
            if place.mask != u64::MAX >> (64 - 8 * u32::from(place.width)) || shared {
                continue;
            }
            if let (Some(place), Some(field)) = (changes.get_mut(i), frame.get_mut(bytes)) {
                place.alone = true;
                field.fill(0);
            }
        }
    }

    /// Writes `value` into `frame`, and adds to the two sums what that changes in them.
    #[inline]
    pub(crate) fn write(&self, value: u64, frame: &mut [u8], ip4: &mut u64, l4: &mut u64) {
        let mut value = value;
        if let Some(Digit { divide, of }) = self.digit {
            // A digit's divisor and length were checked to be at least 1.
            value = (value / divide.max(1)) % of.max(1);
        }
        value = value.wrapping_add(self.add);
        if self.shift != 0 {
            value = shifted(value, self.shift);
        }
        value = (value >> self.drop) & self.mask;
        let difference = if self.alone {
            match self.width {
                1 => put(frame, self.offset, [value as u8]),
                2 => put(frame, self.offset, (value as u16).to_be_bytes()),
                4 => put(frame, self.offset, (value as u32).to_be_bytes()),
                _ => put(frame, self.offset, value.to_be_bytes()),
            }
            sum::weigh(value, self.weight)
        } else {
            let (old, new) = change(frame, self.offset, self.width, self.mask, value);
            sum::difference(old, new, self.weight)
        };
        *ip4 += difference & self.in_ip4;
        *l4 += difference & self.in_l4;
    }

    fn bytes(&self) -> Range<usize> {
        self.offset..self.offset + usize::from(self.width)
    }
}

/// `value` shifted left, right if `by` is negative; nothing is left of it after 64 bits.
fn shifted(value: u64, by: i8) -> u64 {
    let bits = u32::from(by.unsigned_abs());
    if by > 0 { value.checked_shl(bits) } else { value.checked_shr(bits) }.unwrap_or(0)
}

#[inline]
fn put<const WIDTH: usize>(frame: &mut [u8], offset: usize, bytes: [u8; WIDTH]) {
    if let Some(field) = frame.get_mut(offset..offset + WIDTH) {
        field.copy_from_slice(&bytes);
    }
}

/// Sets the bits of a field that `mask` has; gives the field's old and new value.
fn change(frame: &mut [u8], offset: usize, width: u8, mask: u64, value: u64) -> (u64, u64) {
    let Some(field) = frame.get_mut(offset..offset + usize::from(width)) else { return (0, 0) };
    let old = field.iter().fold(0, |old, byte| old << 8 | u64::from(*byte));
    let new = (old & !mask) | value;
    let mut rest = new;
    for byte in field.iter_mut().rev() {
        *byte = rest as u8;
        rest >>= 8;
    }
    (old, new)
}

/// Whether the byte at `at` is summed into the IPv4 header's checksum, and into the transport's.
pub(crate) fn belongs(layout: Option<&Layout>, at: usize) -> (bool, bool) {
    let Some(layout) = layout else { return (false, false) };
    let in_ip4 = layout.is_ip4 && (layout.ip..layout.l4).contains(&at);
    let pseudo = layout.addresses().contains(&at) || (layout.is_ip4 && at == layout.ip + 9);
    let in_l4 = (layout.l4..layout.end).contains(&at) || (layout.has_pseudo_header() && pseudo);
    (in_ip4, in_l4)
}
