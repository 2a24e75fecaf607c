//! A stream's frames, one after the other: the hot path of sending.
//!
//! The first frame is made once, with its tag and right checksums. Each later one is a copy of it in which the changes and the
//! sequence number are written; the checksums follow from the sums of the first frame and the differences, so that the work
//! does not grow with the frame.

use shoal_lab_plan::{Stream, Tag};

use crate::cursor::Cursor;
use crate::error::FrameError;
use crate::layout::{self, Layout};
use crate::place::{Place, belongs};
use crate::sum;
use crate::tag::{self, LAST_SEQUENCE, LAST_STREAM, MAGIC, SIGNED_LEN, Signature};

/// Writes the frames of one stream in order.
#[derive(Clone, Debug)]
pub struct Program {
    /// The first frame, with the tag for sequence 0, and zeros where a change fills its field alone.
    frame: Vec<u8>,
    changes: Vec<(Cursor, Vec<Place>)>,
    /// Where the sequence number of a signed tag is written.
    sequence: Option<Sequence>,
    /// The IPv4 header's checksum, if it is kept right: its offset and the first frame's sum without it.
    ip4: Option<(usize, u64)>,
    /// The transport's.
    l4: Option<(usize, u64)>,
    /// What the transport's checksum is instead of 0.
    for_zero: u16,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    offset: usize,
    weight: u32,
    in_l4: u64,
}

impl Program {
    /// Makes `stream` ready: `index` is its place in [`Trial::streams`](shoal_lab_plan::Trial::streams) over both sides,
    /// `trial` the trial's id, `seed` the trial's seed. The program stands at sequence 0.
    ///
    /// # Errors
    ///
    /// A tag or write that does not fit into the frame, a range, step or width that cannot be, an index above 127.
    pub fn new(stream: &Stream, index: u8, trial: u16, seed: u64) -> Result<Program, FrameError> {
        if index > LAST_STREAM {
            return Err(FrameError::Index(index, LAST_STREAM));
        }
        let mut frame = stream.frame.clone();
        if frame.len() < layout::ETHERNET {
            let size = frame.len() as u32 + shoal_lab_plan::FCS;
            let nearest = shoal_lab_plan::SMALLEST;
            return Err(FrameError::Size { what: "a frame".to_owned(), size, nearest });
        }
        let layout = Layout::of(&frame);
        let layout = layout.as_ref();
        let (ip4_at, l4_at) = kept(stream, layout);
        let checksums: Vec<usize> = [ip4_at, l4_at].into_iter().flatten().collect();

        let signature = Signature { trial, from: stream.from, stream: index, sequence: 0 };
        put_tag(&mut frame, stream.tag, signature, &checksums)?;
        let mut changes = Vec::with_capacity(stream.changes.len());
        for (number, change) in stream.changes.iter().enumerate() {
            let cursor = Cursor::new(&change.variable, seed.wrapping_add(number as u64))?;
            let mut places = Vec::with_capacity(change.writes.len());
            for write in &change.writes {
                places.extend(Place::of(write, &frame, layout, &checksums)?);
            }
            changes.push((cursor, places));
        }
        let sequence = match stream.tag {
            Tag::Signed { offset } => {
                let offset = usize::from(offset) + SIGNED_LEN - 6;
                let weight = if offset.is_multiple_of(2) { 0 } else { 8 };
                let inside = (offset..offset + 6).filter(|at| belongs(layout, *at).1).count();
                if l4_at.is_some() && !matches!(inside, 0 | 6) {
                    // Half in the packet, half in the padding behind it.
                    let end = layout.map_or(0, |l| l.end);
                    return Err(FrameError::Offset {
                        what: "a tag".to_owned(),
                        offset: (offset + 6 - SIGNED_LEN) as u16,
                        len: end,
                        nearest: end.saturating_sub(SIGNED_LEN),
                    });
                }
                Some(Sequence { offset, weight, in_l4: if inside == 6 { u64::MAX } else { 0 } })
            }
            Tag::Plain { .. } | Tag::None => None,
        };
        let mut places: Vec<&mut Place> = changes.iter_mut().flat_map(|(_, places)| places).collect();
        Place::prepare(&mut places, &mut frame);
        let ip4 = layout.zip(ip4_at).map(|(l, at)| (at, l.ip4_sum(&frame)));
        let l4 = layout.zip(l4_at).map(|(l, at)| (at, l.l4_sum(&frame)));
        let for_zero = layout.map_or(0, |l| l.l4_result(0xffff));
        Ok(Program { frame, changes, sequence, ip4, l4, for_zero, next: 0 })
    }

    /// Bytes of each frame, without FCS.
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Writes the frame with number `sequence` to the beginning of `into`, which has room for [`len`](Self::len) bytes;
    /// nothing is written where it has less. The next number costs the least; any other is gone to first.
    #[inline]
    pub fn write(&mut self, sequence: u64, into: &mut [u8]) {
        if sequence != self.next {
            self.skip_to(sequence);
        }
        self.next = sequence.wrapping_add(1);
        let Some(into) = into.get_mut(..self.frame.len()) else { return };
        into.copy_from_slice(&self.frame);
        let (mut ip4, mut l4) = (0, 0);
        for (cursor, places) in &mut self.changes {
            let value = cursor.next();
            for place in places {
                place.write(value, into, &mut ip4, &mut l4);
            }
        }
        if let Some(Sequence { offset, weight, in_l4 }) = self.sequence {
            let number = sequence & LAST_SEQUENCE;
            let [_, _, bytes @ ..] = number.to_be_bytes();
            if let Some(field) = into.get_mut(offset..offset + 6) {
                field.copy_from_slice(&bytes);
            }
            l4 += sum::weigh(number, weight) & in_l4;
        }
        if let Some((at, first)) = self.ip4 {
            layout::put_word(into, at, !sum::fold(first + ip4));
        }
        if let Some((at, first)) = self.l4 {
            let checksum = !sum::fold(first + l4);
            layout::put_word(into, at, if checksum == 0 { self.for_zero } else { checksum });
        }
    }

    /// Goes to `sequence` as if all before it had been written.
    pub fn skip_to(&mut self, sequence: u64) {
        for (cursor, _) in &mut self.changes {
            cursor.skip_to(sequence);
        }
        self.next = sequence;
    }
}

/// Offsets of the checksums of `stream` that are kept right: the IPv4 header's and the transport's.
pub(crate) fn kept(stream: &Stream, layout: Option<&Layout>) -> (Option<usize>, Option<usize>) {
    let Some(layout) = layout else { return (None, None) };
    (
        layout.ip4_checksum().filter(|_| stream.checksums.ip4),
        layout.l4_checksum().filter(|_| stream.checksums.l4),
    )
}

fn put_tag(frame: &mut [u8], tag: Tag, signature: Signature, checksums: &[usize]) -> Result<(), FrameError> {
    let Some((offset, length)) = tag::extent(tag) else { return Ok(()) };
    if let Some(checksum) = checksums.iter().find(|c| offset < **c + 2 && **c < offset + length) {
        let nearest = checksum + 2;
        return Err(FrameError::OnChecksum { offset: offset as u16, checksum: *checksum, nearest });
    }
    let len = frame.len();
    let field = frame.get_mut(offset..offset + length).ok_or_else(|| FrameError::Offset {
        what: format!("a tag of {length} bytes"),
        offset: offset as u16,
        len,
        nearest: len.saturating_sub(length),
    })?;
    match tag {
        Tag::Signed { .. } => field.copy_from_slice(&signature.bytes()),
        Tag::Plain { .. } | Tag::None => field.copy_from_slice(&MAGIC),
    }
    Ok(())
}
