//! Rows: each thread's numbers of one counter, in the segment.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use shoal_infra::{SharedSegment, U64Slice};

use crate::MAX_THREADS;

/// Words in front of a row. The last one says how many numbers follow, as VPP's vectors have it.
const ROW_HEADER: usize = 8;
/// The rest of that word: VPP's size of the header itself, in units of eight bytes.
const ROW_HEADER_REST: u64 = 1 << 32;

/// The word of the segment's first page that is not 0 while what clients read changes: they wait, or read again.
pub const IN_PROGRESS: usize = 3;

/// When clients see that a counter has got longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Growth {
    /// At once; names come later.
    AtOnce,
    /// At once, and they wait until names are there ([`IN_PROGRESS`]): these come soon.
    Awaited,
    /// When names are there.
    WithNames,
}

/// Counts the changes of the directory's structure, and tells the publisher.
#[derive(Default)]
pub(super) struct DirectoryVersion {
    pub(super) count: AtomicU64,
    pub(super) observer: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(super) header: OnceLock<U64Slice>,
    /// A [`Growth`].
    pub(super) growth: AtomicU8,
    /// Counters that have got longer than clients see.
    pub(super) grown: Mutex<Vec<Arc<Rows>>>,
}

impl DirectoryVersion {
    pub(super) fn beat(&self) {
        self.count.fetch_add(1, Ordering::Release);
        if let Some(observer) = self.observer.get() {
            observer();
        }
    }

    pub(super) fn grows(&self, how: Growth) -> bool {
        self.growth.load(Ordering::Acquire) == how as u8
    }

    pub(super) fn set_in_progress(&self, is: bool) {
        if let Some(word) = self.header.get().and_then(|header| header.get(IN_PROGRESS)) {
            word.store(is.into(), Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }
}

impl std::fmt::Debug for DirectoryVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pulse").field(&self.count).finish()
    }
}

/// A counter that has got longer than clients see it.
#[derive(Debug)]
pub struct GrownCounter {
    rows: Arc<Rows>,
    len: usize,
}

impl GrownCounter {
    /// Shows clients its length as it was when it was taken note of.
    pub fn show(&self) {
        self.rows.show(self.len);
    }
}

impl DirectoryVersion {
    /// Counters that have got longer since this was asked last.
    pub(super) fn take_grown(&self) -> Vec<GrownCounter> {
        let grown = std::mem::take(&mut *self.grown.lock().unwrap_or_else(PoisonError::into_inner));
        let note = |rows: Arc<Rows>| {
            rows.is_noted.store(false, Ordering::Relaxed);
            GrownCounter { len: rows.len.load(Ordering::Relaxed), rows }
        };
        grown.into_iter().map(note).collect()
    }
}

/// One thread's numbers of one counter, where they lie in the segment.
// A cache line each: a thread's row is found by one shift.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Row(U64Slice);

impl Row {
    /// The number at a place.
    #[inline(always)]
    pub fn get(&self, at: usize) -> Option<&AtomicU64> {
        self.0.get(ROW_HEADER + at)
    }

    /// Where the first number lies, in bytes from the segment's start. The word before it begins with how many
    /// objects are counted.
    pub fn offset(&self) -> usize {
        self.0.offset() + ROW_HEADER * 8
    }

    /// Adds to the number at a place, on the thread whose row it is.
    #[inline(always)]
    pub(crate) fn add(&self, at: usize, n: u64) {
        if let Some(cell) = self.get(at) {
            // Only this thread writes the row, so load and store suffice.
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    fn set_len(&self, len: usize) {
        if let Some(word) = self.0.get(ROW_HEADER - 1) {
            word.store(ROW_HEADER_REST | len as u64, Ordering::Release);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.iter().skip(ROW_HEADER)
    }
}

/// Rows of one counter: per thread, `width` numbers for each of up to `capacity` objects.
#[derive(Debug)]
pub(super) struct Rows {
    segment: SharedSegment,
    threads: [OnceLock<Row>; MAX_THREADS],
    width: usize,
    capacity: usize,
    len: AtomicUsize,
    /// The length that clients see: it changes together with the names of what is counted.
    shown: AtomicUsize,
    /// Whether it stands among those that have got longer.
    is_noted: AtomicBool,
    pulse: Arc<DirectoryVersion>,
}

impl Rows {
    pub(super) fn new(
        segment: &SharedSegment,
        pulse: &Arc<DirectoryVersion>,
        width: usize,
        capacity: usize,
    ) -> Arc<Self> {
        let threads = [const { OnceLock::new() }; MAX_THREADS];
        let (segment, pulse) = (segment.clone(), Arc::clone(pulse));
        let (len, shown, is_noted) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Rows { segment, threads, width, capacity, len, shown, is_noted, pulse })
    }

    pub(super) fn ensure_thread(&self, thread: usize) -> io::Result<()> {
        let Some(row) = self.threads.get(thread) else { return Ok(()) };
        if row.get().is_none() {
            let words = ROW_HEADER + self.width * self.capacity;
            let fresh = Row(self.segment.alloc_u64s(words).map_err(io::Error::other)?);
            fresh.set_len(self.shown.load(Ordering::Relaxed));
            let _ = row.set(fresh);
        }
        Ok(())
    }

    #[inline(always)]
    fn cell(&self, thread: usize, at: usize) -> Option<&AtomicU64> {
        self.threads.get(thread)?.get()?.get(at)
    }

    #[inline(always)]
    fn add(&self, thread: usize, at: usize, n: u64) {
        if let Some(row) = self.threads.get(thread).and_then(OnceLock::get) {
            row.add(at, n);
        }
    }

    /// Adds to two numbers side by side.
    #[inline(always)]
    fn add_pair(&self, thread: usize, at: usize, [n, m]: [u64; 2]) {
        let row = self.threads.get(thread).and_then(OnceLock::get);
        if let Some(row) = row
            && let (Some(first), Some(second)) = (row.get(at), row.get(at + 1))
        {
            first.store(first.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
            second.store(second.load(Ordering::Relaxed).wrapping_add(m), Ordering::Relaxed);
        }
    }

    fn get(&self, thread: usize, at: usize) -> u64 {
        self.cell(thread, at).map_or(0, |c| c.load(Ordering::Relaxed))
    }

    fn sum(&self, at: usize) -> u64 {
        (0..MAX_THREADS).map(|t| self.get(t, at)).fold(0, u64::wrapping_add)
    }

    fn clear(&self, thread: usize) {
        if let Some(row) = self.threads.get(thread).and_then(OnceLock::get) {
            let used = self.len.load(Ordering::Relaxed) * self.width;
            row.iter().take(used).for_each(|c| c.store(0, Ordering::Relaxed));
        }
    }

    fn zero(&self, index: usize) {
        for thread in 0..MAX_THREADS {
            for at in index * self.width..(index + 1) * self.width {
                if let Some(cell) = self.cell(thread, at) {
                    cell.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    fn show(&self, len: usize) {
        let shown = self.shown.fetch_max(len, Ordering::Relaxed).max(len);
        self.threads.iter().filter_map(OnceLock::get).for_each(|row| row.set_len(shown));
    }

    fn ensure(self: &Arc<Self>, len: usize) {
        let len = len.min(self.capacity);
        if self.len.fetch_max(len, Ordering::Relaxed) < len {
            if !self.pulse.grows(Growth::WithNames) {
                if self.pulse.grows(Growth::Awaited) {
                    self.pulse.set_in_progress(true);
                }
                self.show(len);
            } else if !self.is_noted.swap(true, Ordering::Relaxed) {
                let mut grown = self.pulse.grown.lock().unwrap_or_else(PoisonError::into_inner);
                grown.push(Arc::clone(self));
            }
            self.pulse.beat();
        }
    }
}

macro_rules! shared_rows {
    ($name:ident) => {
        impl $name {
            /// Objects counted so far; the second index of a reader goes up to here.
            pub fn len(&self) -> usize {
                self.0.len.load(Ordering::Relaxed)
            }

            /// Whether nothing is counted yet.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Most objects it can count.
            pub fn capacity(&self) -> usize {
                self.0.capacity
            }

            /// Makes room for objects `0..len`. Never shrinks.
            pub fn ensure(&self, len: usize) {
                self.0.ensure(len);
            }

            /// Sets one thread's row to zero; called on that thread.
            pub fn clear_thread(&self, thread: usize) {
                self.0.clear(thread);
            }

            /// Sets one object to zero on all threads: for an index that is reused and not counted now.
            pub fn zero(&self, index: usize) {
                self.0.zero(index);
            }

            /// One thread's numbers, where they lie in the segment; `None` for a thread that never ran.
            pub fn row(&self, thread: usize) -> Option<&Row> {
                self.0.threads.get(thread)?.get()
            }
        }
    };
}

/// A counter of events, per thread and object.
#[derive(Clone, Debug)]
pub struct Simple(pub(super) Arc<Rows>);

/// A counter of packets and bytes, per thread and object.
#[derive(Clone, Debug)]
pub struct Combined(pub(super) Arc<Rows>);

shared_rows!(Simple);
shared_rows!(Combined);

impl Simple {
    /// Adds on the calling thread's row.
    #[inline(always)]
    pub fn add(&self, thread: usize, index: usize, n: u64) {
        self.0.add(thread, index, n);
    }

    /// One thread's count.
    pub fn get(&self, thread: usize, index: usize) -> u64 {
        self.0.get(thread, index)
    }

    /// All threads' count.
    pub fn sum(&self, index: usize) -> u64 {
        self.0.sum(index)
    }
}

impl Combined {
    /// Adds on the calling thread's row.
    #[inline(always)]
    pub fn add(&self, thread: usize, index: usize, packets: u64, bytes: u64) {
        self.0.add_pair(thread, index * 2, [packets, bytes]);
    }

    /// One thread's packets and bytes.
    pub fn get(&self, thread: usize, index: usize) -> (u64, u64) {
        (self.0.get(thread, index * 2), self.0.get(thread, index * 2 + 1))
    }

    /// All threads' packets and bytes.
    pub fn sum(&self, index: usize) -> (u64, u64) {
        (self.0.sum(index * 2), self.0.sum(index * 2 + 1))
    }
}
