//! Knows the trial's frames again among all that arrives: the hot path of receiving.

use shoal_lab_plan::{Side, Tag, Trial};

use crate::layout::Layout;
use crate::sent::{FrameFault, Sent};
use crate::tag::{self, has_magic, signature};

/// What a frame that arrived is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// One of the lab's, of this trial or another.
    Signed {
        /// The trial's id.
        trial: u16,
        /// Its stream's place in that trial's list.
        stream: u8,
        /// Where it was sent.
        from: Side,
        /// Its number in the stream.
        sequence: u64,
    },
    /// Of a stream whose frames have no number; of several such streams the most alike.
    Plain {
        /// The stream's place in the trial's list.
        stream: u8,
    },
    /// Of no stream: ARP, neighbour discovery, LLDP.
    Other,
}

/// Knows the frames of one trial again.
#[derive(Clone, Debug)]
pub struct FrameClassifier {
    /// Where tags are if the device changes no lengths: the first look.
    usual: Vec<usize>,
    /// Tags' distances from the payload's beginning, for devices that add or remove headers.
    behind: Vec<usize>,
    /// Streams with a plain tag, of which a frame could be.
    plain: Vec<u8>,
    /// Streams without a tag.
    bare: Vec<u8>,
    sent: Vec<Sent>,
}

impl FrameClassifier {
    /// Knows the frames of all streams of `trial`.
    pub fn new(trial: &Trial) -> Self {
        Self::of(trial, None)
    }

    /// Knows what should arrive at one port: frames without a number are then taken for streams of the other side only.
    /// Signed frames are known wherever they were sent.
    pub fn arriving_at(trial: &Trial, side: Side) -> Self {
        Self::of(trial, Some(side.other()))
    }

    fn of(trial: &Trial, from: Option<Side>) -> Self {
        let sent: Vec<Sent> = trial.streams.iter().map(Sent::new).collect();
        let mut made = FrameClassifier {
            usual: Vec::new(),
            behind: Vec::new(),
            plain: Vec::new(),
            bare: Vec::new(),
            sent,
        };
        for ((number, stream), sent) in (0..=u8::MAX).zip(&trial.streams).zip(&made.sent) {
            let is_ours = from.is_none_or(|from| stream.from == from);
            match stream.tag {
                Tag::Plain { .. } if is_ours => made.plain.push(number),
                Tag::None if is_ours => made.bare.push(number),
                Tag::Signed { .. } | Tag::Plain { .. } | Tag::None => {}
            }
            if let Some((offset, _)) = tag::extent(stream.tag) {
                push_new(&mut made.usual, offset);
                if let Some(distance) = offset.checked_sub(sent.payload) {
                    push_new(&mut made.behind, distance);
                }
            }
        }
        made
    }

    /// What `frame` is: a comparison of eight bytes for frames as they were sent, a walk over the headers for others.
    #[inline]
    pub fn look(&self, frame: &[u8]) -> Look {
        for offset in &self.usual {
            if has_magic(frame, *offset) {
                return self.read(frame, *offset);
            }
        }
        self.look_behind_headers(frame)
    }

    #[cold]
    fn look_behind_headers(&self, frame: &[u8]) -> Look {
        let layout = Layout::of(frame);
        if let Some(layout) = &layout {
            let payload = layout.payload(frame);
            for distance in &self.behind {
                if has_magic(frame, payload + distance) {
                    return self.read(frame, payload + distance);
                }
            }
        }
        let alike = self.bare.iter().filter(|n| {
            self.sent.get(usize::from(**n)).is_some_and(|sent| sent.is_like(frame, layout.as_ref()))
        });
        self.most_alike(alike.copied(), frame, layout.as_ref())
    }

    #[inline]
    fn read(&self, frame: &[u8], offset: usize) -> Look {
        if let Some(tag) = signature(frame, offset) {
            let tag::Signature { trial, from, stream, sequence } = tag;
            return Look::Signed { trial, stream, from, sequence };
        }
        match self.plain.as_slice() {
            [] => Look::Other,
            [only] => Look::Plain { stream: *only },
            several => self.most_alike(several.iter().copied(), frame, Layout::of(frame).as_ref()),
        }
    }

    /// The first of those streams of `numbers` that `frame` is most like.
    fn most_alike(&self, numbers: impl Iterator<Item = u8>, frame: &[u8], layout: Option<&Layout>) -> Look {
        let mut best = None;
        for number in numbers {
            let likeness = match (self.sent.get(usize::from(number)), layout) {
                (Some(sent), Some(layout)) => sent.likeness(frame, layout),
                _ => 0,
            };
            if best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, number));
            }
        }
        best.map_or(Look::Other, |(_, stream)| Look::Plain { stream })
    }

    /// Looks at a frame of `stream` (its place in the trial's list) whole: lengths, checksums, payload as it was sent. The
    /// transport's checksum is looked at only where the stream keeps it right.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self, frame: &[u8], stream: usize) -> Result<(), FrameFault> {
        self.sent.get(stream).ok_or(FrameFault::Stream(stream))?.check(frame)
    }
}

fn push_new(list: &mut Vec<usize>, value: usize) {
    if !list.contains(&value) {
        list.push(value);
    }
}
