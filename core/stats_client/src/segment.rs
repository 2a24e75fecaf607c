//! The segment's bytes: words, vectors, strings; nothing is believed.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use shoal_infra::SegmentView;

use crate::Error;

/// Most words that one reading copies: 256 MB. Ten thousand interfaces and 64 threads take half of that.
pub const MOST_WORDS: usize = 1 << 25;
/// Longest name of an object.
const MOST_TEXT: u64 = 4096;

/// Words of the header.
mod header {
    pub const LEN: usize = 6;
    pub const VERSION: usize = 0;
    pub const BASE: usize = 1;
    pub const EPOCH: usize = 2;
    pub const IN_PROGRESS: usize = 3;
    pub const DIRECTORY: usize = 4;
}

enum Source {
    Mapped(SegmentView),
    /// A file that could shrink under a mapping.
    File(File),
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub epoch: u64,
    pub in_progress: u64,
    /// A pointer.
    pub directory: u64,
}

/// A segment, and how much more may be read of it.
pub(crate) struct Segment {
    source: Source,
    /// Bytes.
    size: u64,
    base: u64,
    /// Device and inode of the file.
    pub identity: (u64, u64),
    left: Cell<usize>,
}

impl Segment {
    pub(crate) fn open(descriptor: OwnedFd) -> Result<Segment, Error> {
        let file = File::from(descriptor);
        let meta = file.metadata()?;
        let source = match SegmentView::new(file.try_clone()?.into()) {
            Ok(view) => Source::Mapped(view),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Source::File(file),
            Err(e) => return Err(e.into()),
        };
        let identity = (meta.dev(), meta.ino());
        let mut segment = Segment { source, size: meta.len(), base: 0, identity, left: Cell::default() };
        segment.begin();
        let words = segment.words(0, header::LEN)?;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        if word(header::VERSION) != 2 {
            return Err(Error::Version(word(header::VERSION)));
        }
        segment.base = word(header::BASE);
        Ok(segment)
    }

    /// A new reading begins: it may copy so much again.
    pub(crate) fn begin(&self) {
        self.left.set(MOST_WORDS);
    }

    pub(crate) fn header(&self) -> Result<Header, Error> {
        self.left.set(self.left.get().saturating_add(header::LEN));
        let words = self.words(0, header::LEN)?;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        Ok(Header {
            epoch: word(header::EPOCH),
            in_progress: word(header::IN_PROGRESS),
            directory: word(header::DIRECTORY),
        })
    }

    /// Where a pointer leads, in bytes from the segment's start.
    fn offset(&self, pointer: u64) -> Result<u64, Error> {
        let offset = pointer.checked_sub(self.base).filter(|offset| *offset < self.size);
        offset.ok_or(Error::Malformed("a pointer leads out of it"))
    }

    /// The first element of the vector at a pointer, and how many it has, of `size` bytes each.
    pub(crate) fn vector(&self, pointer: u64, size: u64) -> Result<(u64, usize), Error> {
        let at = self.offset(pointer)?;
        let before = at.checked_sub(8).ok_or(Error::Malformed("a vector begins before it"))?;
        let len = self.bytes(before, 4)?;
        let len = u64::from(u32::from_ne_bytes(len.try_into().unwrap_or_default()));
        // At most 2^32 elements of at most 144 bytes, behind a place within the file.
        if at.saturating_add(len.saturating_mul(size)) > self.size {
            return Err(Error::Malformed("a vector ends behind it"));
        }
        Ok((at, len as usize))
    }

    /// The elements of a vector of words, `width` words each.
    pub(crate) fn vector_words(&self, pointer: u64, width: usize) -> Result<Vec<u64>, Error> {
        let (at, len) = self.vector(pointer, width as u64 * 8)?;
        self.words(at, len * width)
    }

    /// The string in a vector of bytes. What is no UTF-8 is replaced.
    pub(crate) fn text(&self, pointer: u64) -> Result<String, Error> {
        let (at, len) = self.vector(pointer, 1)?;
        if len as u64 > MOST_TEXT {
            return Err(Error::Malformed("a name is too long"));
        }
        Ok(until_zero(&self.bytes(at, len)?).into_owned())
    }

    /// The word at a place.
    pub(crate) fn word(&self, at: u64) -> Result<u64, Error> {
        let mut word = [0];
        self.fill(at, &mut word)?;
        let [word] = word;
        Ok(word)
    }

    /// Words from a place on.
    pub(crate) fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, Error> {
        // Before anything is taken from the system for it.
        self.left.set(self.left.get().checked_sub(count).ok_or(Error::TooLarge)?);
        let mut words = vec![0; count];
        self.fill(at, &mut words)?;
        Ok(words)
    }

    fn fill(&self, at: u64, words: &mut [u64]) -> Result<(), Error> {
        if !at.is_multiple_of(8) {
            return Err(Error::Malformed("a word lies across two"));
        }
        let outside = Error::Malformed("it ends too early");
        if at.saturating_add(words.len() as u64 * 8) > self.size {
            return Err(outside);
        }
        match &self.source {
            Source::Mapped(view) => view.read((at / 8) as usize, words).ok_or(outside),
            Source::File(file) => {
                let mut bytes = vec![0; words.len() * 8];
                file.read_exact_at(&mut bytes, at)?;
                let (read, _) = bytes.as_chunks::<8>();
                words.iter_mut().zip(read).for_each(|(to, from)| *to = u64::from_ne_bytes(*from));
                Ok(())
            }
        }
    }

    /// Bytes from a place on.
    fn bytes(&self, at: u64, count: usize) -> Result<Vec<u8>, Error> {
        let skip = (at % 8) as usize;
        let words = self.words(at - skip as u64, (skip + count).div_ceil(8))?;
        Ok(words.iter().flat_map(|word| word.to_ne_bytes()).skip(skip).take(count).collect())
    }
}

/// A text up to its zero.
pub(crate) fn until_zero(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default())
}
