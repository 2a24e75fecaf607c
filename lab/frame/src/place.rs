//! A place of a frame that changes, made ready for the hot path.

use shoal_lab_plan::{Digit, Write};

use crate::error::FrameError;
use crate::layout::Layout;
use crate::sum;

/// What a [`Write`] does to the frame and to its checksums.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    offset: usize,
    width: u8,
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

    /// Writes `value` into `frame`, and adds to the two sums what that changes in them.
    #[inline]
    pub(crate) fn write(&self, value: u64, frame: &mut [u8], ip4: &mut u64, l4: &mut u64) {
        let value = match self.digit {
            // A digit's divisor and length were checked to be at least 1.
            Some(Digit { divide, of }) => (value / divide.max(1)) % of.max(1),
            None => value,
        };
        let value = value.wrapping_add(self.add);
        let value = if self.shift >= 0 {
            value.checked_shl(u32::from(self.shift.unsigned_abs())).unwrap_or(0)
        } else {
            value.checked_shr(u32::from(self.shift.unsigned_abs())).unwrap_or(0)
        };
        let value = (value >> self.drop) & self.mask;
        let keep = !self.mask;
        let (old, new) = match self.width {
            1 => change::<1>(frame, self.offset, keep, value),
            2 => change::<2>(frame, self.offset, keep, value),
            4 => change::<4>(frame, self.offset, keep, value),
            _ => change::<8>(frame, self.offset, keep, value),
        };
        let difference = sum::difference(old, new, self.weight);
        *ip4 += difference & self.in_ip4;
        *l4 += difference & self.in_l4;
    }
}

/// Sets the bits of a field that are not kept; gives the field's old and new value.
#[inline]
fn change<const WIDTH: usize>(frame: &mut [u8], offset: usize, keep: u64, value: u64) -> (u64, u64) {
    let Some(field) = frame.get_mut(offset..offset + WIDTH) else { return (0, 0) };
    let mut eight = [0; 8];
    let (_, low) = eight.split_at_mut(8 - WIDTH);
    low.copy_from_slice(field);
    let old = u64::from_be_bytes(eight);
    let new = (old & keep) | value;
    let bytes = new.to_be_bytes();
    field.copy_from_slice(bytes.split_at(8 - WIDTH).1);
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
