//! Memory shared with other processes: the stats segment is one of these.
//!
//! A memfd of fixed, sparse size, mapped once. It gives out pieces that start on a cache line and
//! never move, so a counter's address is good for ever. Everything is accessed as atomic words,
//! because readers in other processes look at any time.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::raw::segment::{Span, Words};
use crate::sync::{Arc, Mutex, lock};

/// Words in a cache line, the unit of allocation.
const LINE: usize = 8;
/// Words in a page.
const PAGE: usize = 512;

/// A segment of shared memory; a handle, cheap to clone.
#[derive(Clone)]
pub struct SharedSegment {
    inner: Arc<Inner>,
}

struct Inner {
    words: Arc<Words>,
    pieces: Mutex<Pieces>,
}

/// Which words are given out. All counts and positions are words, multiples of a line.
#[derive(Default)]
struct Pieces {
    /// Everything from here on was never given out.
    untouched: usize,
    /// Positions of free pieces, zeroed, by their size.
    free: BTreeMap<usize, Vec<usize>>,
    /// Serial number of the piece that starts at a position.
    live: HashMap<usize, u64>,
    serial: u64,
}

/// The segment has no room for a piece of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFull {
    /// Bytes asked for.
    pub wanted: usize,
    /// Bytes that were never given out.
    pub left: usize,
}

impl fmt::Display for SegmentFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentFull { wanted, left } = self;
        write!(f, "shared segment is full: {wanted} bytes wanted, {left} left")
    }
}

impl std::error::Error for SegmentFull {}

/// A byte range that is not inside the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSegment {
    /// First byte.
    pub offset: usize,
    /// How many bytes.
    pub length: usize,
}

impl fmt::Display for OutOfSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfSegment { offset, length } = self;
        write!(f, "{length} bytes at {offset} are not inside the segment")
    }
}

impl std::error::Error for OutOfSegment {}

/// A piece of a segment: words at a fixed address. Keeps the segment mapped.
#[derive(Clone)]
pub struct U64Slice {
    span: Span,
    start: usize,
    serial: u64,
}

impl SharedSegment {
    /// Creates a segment called `name` (it shows in /proc) of `size` bytes, rounded up to a page.
    /// Memory is used only for what is touched.
    pub fn create(name: &str, size: usize) -> io::Result<SharedSegment> {
        let name = CString::new(name)?;
        Ok(SharedSegment {
            inner: Arc::new(Inner {
                words: Arc::new(Words::create(&name, size)?),
                pieces: Mutex::new(Pieces::default()),
            }),
        })
    }

    /// Gives out `max_len` words, zero, on cache lines of their own. The very first piece is at
    /// offset 0, where formats put their header.
    pub fn alloc_u64s(&self, max_len: usize) -> Result<U64Slice, SegmentFull> {
        let mut pieces = lock(&self.inner.pieces);
        // The last line stays unused: clients refuse what ends where the segment does.
        let left = (self.inner.words.len() - LINE).saturating_sub(pieces.untouched);
        let full = SegmentFull { wanted: max_len.saturating_mul(8), left: left * 8 };
        let words = max_len.max(1).checked_next_multiple_of(LINE).ok_or(full)?;
        let start = match pieces.free.get_mut(&words).and_then(Vec::pop) {
            Some(start) => start,
            None if words <= left => {
                pieces.untouched += words;
                pieces.untouched - words
            }
            None => return Err(full),
        };
        let span = self.inner.words.span(start, max_len).ok_or(full)?;
        pieces.serial += 1;
        let serial = pieces.serial;
        pieces.live.insert(start, serial);
        Ok(U64Slice { span, start, serial })
    }

    /// Takes a piece back, zeroes it, and will give it out again for the same size. False when it
    /// was freed before or is of another segment.
    ///
    /// Clones of the piece stay valid memory, shared with its next owner: free it through
    /// [`qsbr::retire`](crate::qsbr::retire) when workers may still count in it.
    pub fn free(&self, piece: U64Slice) -> bool {
        if !Arc::ptr_eq(&self.inner.words, piece.span.words()) {
            return false;
        }
        let mut pieces = lock(&self.inner.pieces);
        if pieces.live.get(&piece.start) != Some(&piece.serial) {
            return false;
        }
        pieces.live.remove(&piece.start);
        let words = piece.len().max(1).next_multiple_of(LINE);
        self.clear(piece.start, words);
        pieces.free.entry(words).or_default().push(piece.start);
        true
    }

    /// Zeroes words; whole pages are given back to the kernel instead, for a sparse piece that was
    /// hardly used would otherwise become real memory.
    fn clear(&self, start: usize, words: usize) {
        let end = start + words;
        let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        if first < last && self.inner.words.discard(first, last - first) {
            self.zero(start, first);
            self.zero(last, end);
        } else {
            self.zero(start, end);
        }
    }

    fn zero(&self, start: usize, end: usize) {
        for word in self.inner.words.get(start, end - start).unwrap_or_default() {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Writes bytes at a byte offset: a directory, names. Each word changes at once; the whole does
    /// not, so formats guard it with a sequence number of their own. Ends with a release fence.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfSegment> {
        let words = self.covering(offset, bytes.len())?;
        let mut at = offset % 8;
        let mut rest = bytes;
        for word in words {
            let (now, later) = rest.split_at(rest.len().min(8 - at));
            let (mut value, mut mask) = ([0; 8], [0; 8]);
            for (n, byte) in now.iter().enumerate() {
                if let (Some(value), Some(mask)) = (value.get_mut(at + n), mask.get_mut(at + n)) {
                    (*value, *mask) = (*byte, 0xff);
                }
            }
            let (value, mask) = (u64::from_ne_bytes(value), u64::from_ne_bytes(mask));
            if mask == u64::MAX {
                word.store(value, Ordering::Relaxed);
            } else {
                // The neighbouring bytes may belong to somebody else: one atomic step.
                let _ = word
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some((old & !mask) | value));
            }
            (at, rest) = (0, later);
        }
        std::sync::atomic::fence(Ordering::Release);
        Ok(())
    }

    /// Reads bytes at a byte offset.
    pub fn read_bytes(&self, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfSegment> {
        let words = self.covering(offset, bytes.len())?;
        let mut values =
            words.iter().flat_map(|word| word.load(Ordering::Acquire).to_ne_bytes()).skip(offset % 8);
        for byte in bytes {
            *byte = values.next().unwrap_or_default();
        }
        Ok(())
    }

    fn covering(&self, offset: usize, length: usize) -> Result<&[AtomicU64], OutOfSegment> {
        let error = OutOfSegment { offset, length };
        let end = offset.checked_add(length).ok_or(error)?;
        let (first, last) = (offset / 8, end.div_ceil(8));
        self.inner.words.get(first, last - first).ok_or(error)
    }

    /// A descriptor through which clients can read and map the segment but not write it.
    pub fn read_only_fd(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.fd().as_raw_fd());
        Ok(File::open(path)?.into())
    }

    /// The memfd itself, writable.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inner.words.fd()
    }

    /// Bytes of address space, used or not.
    pub fn size(&self) -> usize {
        self.inner.words.len() * 8
    }

    /// Bytes given out at least once.
    pub fn used(&self) -> usize {
        lock(&self.inner.pieces).untouched * 8
    }
}

impl U64Slice {
    /// Where the piece starts, in bytes from the segment's start; a multiple of 64.
    pub fn offset(&self) -> usize {
        self.start * 8
    }
}

impl Deref for U64Slice {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        &self.span
    }
}

impl fmt::Debug for SharedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSegment").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl fmt::Debug for U64Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("U64Slice")
            .field("offset", &self.offset())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Another process's segment, for reading. Whatever it holds, reading it does no harm: words outside are `None`.
pub struct SegmentView {
    words: Words,
}

impl SegmentView {
    /// Maps a segment by the descriptor that its owner gave away.
    ///
    /// # Errors
    /// `Unsupported` if the file could shrink while it is mapped, which would kill this process; or the system
    /// refuses.
    pub fn new(file: OwnedFd) -> io::Result<SegmentView> {
        Ok(SegmentView { words: Words::view(file)? })
    }

    /// Words it has.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies words from a position on. Each is read at once; the whole is not, so formats have a protocol for that.
    pub fn read(&self, start: usize, into: &mut [u64]) -> Option<()> {
        let words = self.words.get(start, into.len())?;
        // Relaxed and a fence: other loads may not be made of memory that cannot be written.
        into.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
        std::sync::atomic::fence(Ordering::Acquire);
        Some(())
    }
}

impl fmt::Debug for SegmentView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentView").field("words", &self.len()).finish_non_exhaustive()
    }
}
