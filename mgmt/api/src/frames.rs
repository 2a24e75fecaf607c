//! Messages in a stream of bytes: each behind 16 bytes, of which 4 say how long it is.

use shoal_module::api::answers::FRAME;

/// The longest message that is taken. A route with all its paths and labels has less than 30 kB, a command line 1 MiB.
pub const MOST: usize = 4 << 20;

/// A client says that its message is longer than any is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {0} bytes, {MOST} at most are taken")]
pub struct TooLong(pub u32);

/// Bytes of a client that were not looked at yet. They take no more memory than came, whatever a length says.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    at: usize,
}

impl Frames {
    /// Adds what came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message.
    ///
    /// # Errors
    /// It will be too long; there is no way to find the one behind it.
    pub fn message(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((_, [a, b, c, d, ..])) = rest.split_at_checked(8) else { return Ok(None) };
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        let Some(end) = usize::try_from(length).ok().filter(|n| *n <= MOST).map(|n| n + FRAME) else {
            return Err(TooLong(length));
        };
        let Some(frame) = rest.get(..end) else { return Ok(None) };
        self.at += end;
        Ok(frame.get(FRAME..))
    }

    /// Bytes of memory that they take.
    pub fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives back the memory of messages that were taken.
    pub fn trim(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
            self.at = 0;
        } else if self.at > 0 && self.bytes.capacity() > 2 * (self.bytes.len() - self.at) {
            self.bytes = self.bytes.split_off(self.at);
            self.at = 0;
        }
    }

    /// Whether all that came was taken.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut all = Vec::new();
        for body in bodies {
            shoal_module::api::answers::frame(&mut all, |to| to.extend(body));
        }
        all
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_were_however_the_stream_is_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            cut in 1usize..60,
        ) {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            for piece in framed(&bodies).chunks(cut) {
                frames.push(piece);
                frames.trim();
                while let Some(body) = frames.message().unwrap() {
                    seen.push(body.to_vec());
                }
            }
            prop_assert_eq!(seen, bodies);
            prop_assert!(frames.is_empty());
            frames.trim();
            prop_assert_eq!(frames.held(), 0);
        }

        #[test]
        fn anything_is_taken_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.message() {}
        }
    }

    #[test]
    fn a_length_of_gigabytes_takes_no_memory() {
        let mut frames = Frames::default();
        frames.push(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(frames.message(), Err(TooLong(u32::MAX)));
        let mut frames = Frames::default();
        let [a, b, c, d] = (MOST as u32).to_be_bytes();
        frames.push(&[0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0]);
        assert_eq!(frames.message(), Ok(None));
        assert!(frames.bytes.capacity() < 1000);
    }
}
