//! What a frame must be like when it arrives: as it was sent, but for what a device may change.

use std::ops::Range;

use shoal_lab_plan::Stream;
use thiserror::Error;

use crate::layout::{self, Layout, word};
use crate::place::belongs;
use crate::program::kept;
use crate::sum;
use crate::tag;

/// What is wrong with a frame that arrived.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// The trial has no such stream.
    #[error("there is no stream {0}")]
    Stream(usize),
    /// No whole IP packet is in it, although one was sent.
    #[error("the frame of {0} bytes holds no whole IP packet")]
    NoPacket(usize),
    /// The transport's length (of other frames: the frame's) is another.
    #[error("{found} bytes arrived of a packet that had {sent}")]
    Length {
        /// Bytes behind the IP header, or behind both MACs, as sent.
        sent: usize,
        /// As they arrived.
        found: usize,
    },
    /// Another transport.
    #[error("protocol {found} arrived where {sent} was sent")]
    Protocol {
        /// As sent.
        sent: u8,
        /// As it arrived.
        found: u8,
    },
    /// The IPv4 header's checksum.
    #[error("IPv4 header checksum {found:#06x} should be {right:#06x}")]
    Ip4Checksum {
        /// As it arrived.
        found: u16,
        /// What the header comes to.
        right: u16,
    },
    /// The transport's checksum.
    #[error("transport checksum {found:#06x} should be {right:#06x}")]
    L4Checksum {
        /// As it arrived.
        found: u16,
        /// What the packet comes to.
        right: u16,
    },
    /// A byte of the payload.
    #[error("payload byte {at} is {found:#04x} and was sent as {sent:#04x}")]
    Payload {
        /// From the payload's first; of frames without IP: from the frame's first.
        at: usize,
        /// As sent.
        sent: u8,
        /// As it arrived.
        found: u8,
    },
}

/// A stream's first frame and what of it never changes.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    frame: Vec<u8>,
    pub layout: Option<Layout>,
    /// Where the payload begins; of frames without IP: behind both MACs.
    pub payload: usize,
    /// Pieces of the payload that are the same in all frames.
    constant: Vec<Range<usize>>,
    ip4: bool,
    l4: bool,
}

impl Sent {
    pub(crate) fn new(stream: &Stream) -> Sent {
        let frame = stream.frame.clone();
        let layout = Layout::of(&frame);
        let payload = layout.as_ref().map_or(12.min(frame.len()), |l| l.payload(&frame));
        let end = layout.as_ref().map_or(frame.len(), |l| l.end);
        let mut changes = vec![false; frame.len()];
        let writes = stream.changes.iter().flat_map(|c| &c.writes);
        let written = writes.map(|w| (usize::from(w.offset), usize::from(w.width)));
        for (offset, length) in written.chain(tag::extent(stream.tag)) {
            for byte in changes.iter_mut().skip(offset).take(length) {
                *byte = true;
            }
        }
        let touched = |l4: bool| {
            changes.iter().enumerate().any(|(at, changes)| {
                let (in_ip4, in_l4) = belongs(layout.as_ref(), at);
                *changes && if l4 { in_l4 } else { in_ip4 }
            })
        };
        let (ip4_kept, l4_kept) = kept(stream, layout.as_ref());
        let right = layout.as_ref().map(|l| (ip4_wrong(l, &frame).is_ok(), l4_wrong(l, &frame).is_ok()));
        let (ip4_right, l4_right) = right.unwrap_or_default();
        Sent {
            constant: pieces(&changes, payload..end),
            ip4: ip4_kept.is_some() || (ip4_right && !touched(false)),
            l4: l4_kept.is_some() || (l4_right && !touched(true)),
            layout,
            payload,
            frame,
        }
    }

    /// Compares a frame that arrived.
    pub(crate) fn check(&self, frame: &[u8]) -> Result<(), FrameFault> {
        let Some(sent) = &self.layout else {
            // The device may have changed the MACs; all else is to be as it was.
            if frame.len() != self.frame.len() {
                return Err(FrameFault::Length { sent: self.frame.len(), found: frame.len() });
            }
            return self.compare(frame, self.payload);
        };
        let Some(found) = Layout::of(frame) else { return Err(FrameFault::NoPacket(frame.len())) };
        let (length, arrived) = (sent.end - sent.l4, found.end - found.l4);
        if length != arrived {
            return Err(FrameFault::Length { sent: length, found: arrived });
        }
        if sent.protocol != found.protocol {
            return Err(FrameFault::Protocol { sent: sent.protocol, found: found.protocol });
        }
        if self.ip4 {
            ip4_wrong(&found, frame)?;
        }
        if self.l4 {
            l4_wrong(&found, frame)?;
        }
        self.compare(frame, found.payload(frame))
    }

    fn compare(&self, frame: &[u8], payload: usize) -> Result<(), FrameFault> {
        for piece in &self.constant {
            let sent = self.frame.get(piece.clone()).unwrap_or_default();
            let from = piece.start - self.payload + payload;
            let found = frame.get(from..from + sent.len()).unwrap_or_default();
            if sent == found {
                continue;
            }
            let differs = sent.iter().zip(found).position(|(s, f)| s != f).unwrap_or(found.len());
            let byte = |bytes: &[u8]| bytes.get(differs).copied().unwrap_or(0);
            let start = if self.layout.is_some() { piece.start - self.payload } else { piece.start };
            return Err(FrameFault::Payload { at: start + differs, sent: byte(sent), found: byte(found) });
        }
        Ok(())
    }

    /// How alike an arrived packet is: its transport's length counts most, then its destination, then its source.
    pub(crate) fn likeness(&self, frame: &[u8], found: &Layout) -> u8 {
        let Some(sent) = &self.layout else { return 0 };
        let mut likeness = 0;
        if sent.protocol == found.protocol && sent.end - sent.l4 == found.end - found.l4 {
            likeness += 4;
        }
        if let (Some(a), Some(b)) = (sent.ends(&self.frame), found.ends(frame)) {
            likeness += if a.1 == b.1 { 2 } else { 0 } + u8::from(a.0 == b.0);
        }
        likeness
    }

    /// Whether `frame` could be of this stream, judged by EtherType and transport only.
    pub(crate) fn is_like(&self, frame: &[u8], found: Option<&Layout>) -> bool {
        match (&self.layout, found) {
            (Some(sent), Some(found)) => sent.protocol == found.protocol,
            (None, None) => {
                let kind = |frame| layout::network(frame).map(|n| n.0);
                kind(&self.frame) == kind(frame)
            }
            _ => false,
        }
    }
}

fn ip4_wrong(layout: &Layout, frame: &[u8]) -> Result<(), FrameFault> {
    let Some(at) = layout.ip4_checksum() else { return Ok(()) };
    let (found, right) = (word(frame, at).unwrap_or(0), !sum::fold(layout.ip4_sum(frame)));
    if found == right { Ok(()) } else { Err(FrameFault::Ip4Checksum { found, right }) }
}

fn l4_wrong(layout: &Layout, frame: &[u8]) -> Result<(), FrameFault> {
    let Some(at) = layout.l4_checksum() else { return Ok(()) };
    let (found, right) = (word(frame, at).unwrap_or(0), layout.l4_result(layout.l4_sum(frame)));
    if found == right { Ok(()) } else { Err(FrameFault::L4Checksum { found, right }) }
}

/// The runs of bytes within `range` that do not change.
fn pieces(changes: &[bool], range: Range<usize>) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for at in range {
        if changes.get(at) != Some(&false) {
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => pieces.push(at..at + 1),
        }
    }
    pieces
}
