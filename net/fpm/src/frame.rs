//! Frames of the protocol: a header of four bytes and netlink messages (FRR, fpm/fpm.h).

use std::ops::Range;

/// Bytes of a frame's header: version, type, and the length of all of it, most significant byte first.
const HEADER: usize = 4;
const VERSION: u8 = 1;
/// The payload is netlink.
const NETLINK: u8 = 1;
/// Bytes of the longest frame.
pub const LONGEST: usize = u16::MAX as usize;

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Another version of the protocol.
    #[error("version {0} of the protocol, expected {VERSION}")]
    Version(u8),
    /// Another encoding.
    #[error("messages of type {0}, expected {NETLINK} (netlink): zebra needs -M dplane_fpm_nl")]
    Type(u8),
    /// Shorter than its header.
    #[error("a frame of {0} bytes, shorter than its header")]
    Short(u16),
}

/// Bytes that came and are not read yet: never more than a frame and what one read brings.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the first unread byte is.
    at: usize,
}

impl Frames {
    /// Takes bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Where the payload of the next frame is that has come wholly; see [`Frames::payload`].
    ///
    /// # Errors
    /// The stream is none of this protocol.
    pub fn next_frame(&mut self) -> Result<Option<Range<usize>>, FrameError> {
        let Some(&[version, kind, high, low]) = self.bytes.get(self.at..self.at + HEADER) else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        if kind != NETLINK {
            return Err(FrameError::Type(kind));
        }
        let len = u16::from_be_bytes([high, low]);
        if usize::from(len) < HEADER {
            return Err(FrameError::Short(len));
        }
        let end = self.at + usize::from(len);
        if end > self.bytes.len() {
            return Ok(None);
        }
        let payload = self.at + HEADER..end;
        self.at = end;
        Ok(Some(payload))
    }

    /// The bytes of a frame, until more are pushed.
    pub fn payload(&self, frame: Range<usize>) -> &[u8] {
        self.bytes.get(frame).unwrap_or_default()
    }
}

/// Puts the header before messages that begin at `at`.
pub fn wrap(out: &mut Vec<u8>, at: usize) {
    let len = (out.len() - at + HEADER).min(LONGEST) as u16;
    let [high, low] = len.to_be_bytes();
    out.splice(at..at, [VERSION, NETLINK, high, low]);
}
