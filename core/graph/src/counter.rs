//! Counters: kept per thread in shared memory, added up when somebody looks.
//!
//! Each thread owns one row of every counter and is the only one to write it, with a plain load and store; rows
//! never move (address space for the largest table is reserved at once), so growing costs nobody a lock.
//! [`Counters`] is the directory: names to counters. The stats segment publishes it in VPP's layout, `show`
//! commands read it directly.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use shoal_infra::{SharedSegment, U64Slice};

use crate::MAX_THREADS;

/// Words kept at the segment's start.
const HEADER_WORDS: usize = 512;
/// Words in front of a row. The last one says how many numbers follow, as VPP's vectors have it.
const ROW_HEADER: usize = 8;
/// The rest of that word: VPP's size of the header itself, in units of eight bytes.
const ROW_HEADER_REST: u64 = 1 << 32;

/// Counts the changes of the directory's structure, and tells whoever publishes it.
#[derive(Default)]
struct Pulse {
    count: AtomicU64,
    observer: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Pulse {
    fn beat(&self) {
        self.count.fetch_add(1, Ordering::Release);
        if let Some(observer) = self.observer.get() {
            observer();
        }
    }
}

impl std::fmt::Debug for Pulse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pulse").field(&self.count).finish()
    }
}

/// One thread's numbers of one counter, where they lie in the segment.
#[derive(Clone, Debug)]
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
struct Rows {
    segment: SharedSegment,
    threads: [OnceLock<Row>; MAX_THREADS],
    width: usize,
    capacity: usize,
    len: AtomicUsize,
    pulse: Arc<Pulse>,
}

impl Rows {
    fn new(segment: &SharedSegment, pulse: &Arc<Pulse>, width: usize, capacity: usize) -> Arc<Self> {
        let threads = [const { OnceLock::new() }; MAX_THREADS];
        let (segment, pulse) = (segment.clone(), Arc::clone(pulse));
        Arc::new(Rows { segment, threads, width, capacity, len: AtomicUsize::new(0), pulse })
    }

    fn ensure_thread(&self, thread: usize) -> io::Result<()> {
        let Some(row) = self.threads.get(thread) else { return Ok(()) };
        if row.get().is_none() {
            let words = ROW_HEADER + self.width * self.capacity;
            let fresh = Row(self.segment.alloc_u64s(words).map_err(io::Error::other)?);
            fresh.set_len(self.len.load(Ordering::Relaxed));
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
        if let Some(cell) = self.cell(thread, at) {
            // Only this thread writes the row, so load and store suffice.
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
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

    fn ensure(&self, len: usize) {
        let len = len.min(self.capacity);
        if self.len.fetch_max(len, Ordering::Relaxed) < len {
            self.threads.iter().filter_map(OnceLock::get).for_each(|row| row.set_len(len));
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

            /// Sets one object to zero on all threads: for an index that is used anew and not counted now.
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
pub struct Simple(Arc<Rows>);

/// A counter of packets and bytes, per thread and object.
#[derive(Clone, Debug)]
pub struct Combined(Arc<Rows>);

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
        self.0.add(thread, index * 2, packets);
        self.0.add(thread, index * 2 + 1, bytes);
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

/// What a name in the directory stands for.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Events per thread and object.
    Simple(Simple),
    /// Packets and bytes per thread and object.
    Combined(Combined),
    /// One number that goes up.
    Scalar(Number),
    /// One number that may go down.
    Gauge(Number),
    /// Names of objects by index.
    Names(Names),
    /// One column of another counter.
    Symlink {
        /// The counter's name.
        target: String,
        /// The object's index in it.
        index: usize,
    },
}

/// One number of the directory.
#[derive(Clone, Debug)]
pub struct Number(Arc<NumberCell>);

#[derive(Debug, Default)]
struct NumberCell {
    value: AtomicU64,
    /// The word of a published directory that shows the number, if there is one.
    shown: Mutex<Option<(U64Slice, usize)>>,
}

impl Number {
    /// Sets it.
    pub fn set(&self, value: u64) {
        let shown = lock(&self.0.shown);
        self.0.value.store(value, Ordering::Relaxed);
        Self::show(shown.as_ref(), value);
    }

    /// Reads it.
    pub fn get(&self) -> u64 {
        self.0.value.load(Ordering::Relaxed)
    }

    /// From now on every change shows in this word of the segment too: VPP keeps such numbers in the directory
    /// itself, which moves when it grows.
    pub fn show_at(&self, piece: &U64Slice, word: usize) {
        let mut shown = lock(&self.0.shown);
        *shown = Some((piece.clone(), word));
        Self::show(shown.as_ref(), self.get());
    }

    /// No word of the segment shows it any more.
    pub fn hide(&self) {
        *lock(&self.0.shown) = None;
    }

    fn show(at: Option<&(U64Slice, usize)>, value: u64) {
        if let Some(cell) = at.and_then(|(piece, word)| piece.get(*word)) {
            cell.store(value, Ordering::Relaxed);
        }
    }
}

/// Names of objects by their index.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<(Mutex<Vec<String>>, Arc<Pulse>)>);

impl Names {
    /// Names an object.
    pub fn set(&self, index: usize, name: &str) {
        let (names, pulse) = &*self.0;
        let mut names = lock(names);
        if names.len() <= index {
            names.resize(index + 1, String::new());
        }
        if let Some(slot) = names.get_mut(index).filter(|slot| *slot != name) {
            slot.clear();
            slot.push_str(name);
            drop(names);
            pulse.beat();
        }
    }

    /// All names.
    pub fn all(&self) -> Vec<String> {
        lock(&self.0.0).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name and what it stands for.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path-like name: `/if/rx`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// The directory of all counters of one router.
#[derive(Debug)]
pub struct Counters {
    segment: SharedSegment,
    header: U64Slice,
    entries: Mutex<Vec<Entry>>,
    threads: AtomicUsize,
    /// Beats whenever a name comes or goes or a table gets longer.
    pulse: Arc<Pulse>,
}

impl Counters {
    /// A directory in a fresh segment of `bytes` of address space.
    ///
    /// # Errors
    /// The system gives no shared memory.
    pub fn new(bytes: usize) -> io::Result<Arc<Self>> {
        let segment = SharedSegment::create("shoal-stats", bytes)?;
        // The first piece lies at the segment's start and is the published directory's header.
        let header = segment.alloc_u64s(HEADER_WORDS).map_err(io::Error::other)?;
        let counters = Counters {
            segment,
            header,
            entries: Mutex::default(),
            threads: AtomicUsize::new(1),
            pulse: Arc::default(),
        };
        Ok(Arc::new(counters))
    }

    /// The memory the counters live in.
    pub fn segment(&self) -> &SharedSegment {
        &self.segment
    }

    /// The first page of the segment, for whoever publishes the directory.
    pub fn header(&self) -> &U64Slice {
        &self.header
    }

    /// A number that changes with the directory's structure.
    pub fn generation(&self) -> u64 {
        self.pulse.count.load(Ordering::Acquire)
    }

    /// Tells readers of the directory that a table got longer or a name vector changed.
    pub fn touch(&self) {
        self.pulse.beat();
    }

    /// Names the one who is told of every change of the structure, at once and on the thread that makes it. Only
    /// the first one is; false for others.
    pub fn observe(&self, observer: impl Fn() + Send + Sync + 'static) -> bool {
        self.pulse.observer.set(Box::new(observer)).is_ok()
    }

    /// Threads that have rows.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Gives every counter a row for `thread` and those before it.
    ///
    /// # Errors
    /// The segment is full.
    pub fn ensure_threads(&self, threads: usize) -> io::Result<()> {
        for entry in lock(&self.entries).iter() {
            for thread in 0..threads {
                match &entry.kind {
                    Kind::Simple(Simple(rows)) | Kind::Combined(Combined(rows)) => {
                        rows.ensure_thread(thread)?;
                    }
                    _ => {}
                }
            }
        }
        self.threads.fetch_max(threads, Ordering::Relaxed);
        self.touch();
        Ok(())
    }

    fn rows(&self, width: usize, capacity: usize) -> io::Result<Arc<Rows>> {
        let rows = Rows::new(&self.segment, &self.pulse, width, capacity);
        for thread in 0..self.threads() {
            rows.ensure_thread(thread)?;
        }
        Ok(rows)
    }

    /// A counter of events for up to `capacity` objects; the one that is there already if the name is taken.
    ///
    /// # Errors
    /// The segment is full.
    pub fn simple(&self, name: &str, capacity: usize) -> io::Result<Simple> {
        if let Some(Kind::Simple(there)) = self.find(name) {
            return Ok(there);
        }
        let counter = Simple(self.rows(1, capacity)?);
        self.add(name, Kind::Simple(counter.clone()));
        Ok(counter)
    }

    /// A counter of packets and bytes for up to `capacity` objects; the one that is there already if the name is
    /// taken.
    ///
    /// # Errors
    /// The segment is full.
    pub fn combined(&self, name: &str, capacity: usize) -> io::Result<Combined> {
        if let Some(Kind::Combined(there)) = self.find(name) {
            return Ok(there);
        }
        let counter = Combined(self.rows(2, capacity)?);
        self.add(name, Kind::Combined(counter.clone()));
        Ok(counter)
    }

    /// One number that goes up; the one that is there already if the name is taken.
    ///
    /// # Errors
    /// None today: it takes no memory of the segment until it is published.
    pub fn scalar(&self, name: &str) -> io::Result<Number> {
        if let Some(Kind::Scalar(there)) = self.find(name) {
            return Ok(there);
        }
        let number = Number(Arc::default());
        self.add(name, Kind::Scalar(number.clone()));
        Ok(number)
    }

    /// One number that goes up and down; the one that is there already if the name is taken.
    ///
    /// # Errors
    /// None today: it takes no memory of the segment until it is published.
    pub fn gauge(&self, name: &str) -> io::Result<Number> {
        if let Some(Kind::Gauge(there)) = self.find(name) {
            return Ok(there);
        }
        let number = Number(Arc::default());
        self.add(name, Kind::Gauge(number.clone()));
        Ok(number)
    }

    /// A vector of names; the one that is there already if the name is taken.
    pub fn names(&self, name: &str) -> Names {
        if let Some(Kind::Names(there)) = self.find(name) {
            return there;
        }
        let names = Names(Arc::new((Mutex::default(), Arc::clone(&self.pulse))));
        self.add(name, Kind::Names(names.clone()));
        names
    }

    /// A name for one object of another counter.
    pub fn symlink(&self, name: &str, target: &str, index: usize) {
        self.add(name, Kind::Symlink { target: target.to_owned(), index });
    }

    fn add(&self, name: &str, kind: Kind) {
        let mut entries = lock(&self.entries);
        match entries.iter_mut().find(|e| e.name == name) {
            Some(entry) => entry.kind = kind,
            None => entries.push(Entry { name: name.to_owned(), kind }),
        }
        drop(entries);
        self.touch();
    }

    /// Takes away all names that begin with `prefix`.
    pub fn remove_prefix(&self, prefix: &str) {
        lock(&self.entries).retain(|e| !e.name.starts_with(prefix));
        self.touch();
    }

    /// What a name stands for.
    pub fn find(&self, name: &str) -> Option<Kind> {
        lock(&self.entries).iter().find(|e| e.name == name).map(|e| e.kind.clone())
    }

    /// The value behind a name: a counter's sum over threads and objects, a symlink's sum over threads.
    pub fn value(&self, name: &str) -> Option<u64> {
        match self.find(name)? {
            Kind::Simple(c) => Some((0..c.len()).map(|i| c.sum(i)).sum()),
            Kind::Combined(c) => Some((0..c.len()).map(|i| c.sum(i).0).sum()),
            Kind::Scalar(n) | Kind::Gauge(n) => Some(n.get()),
            Kind::Names(_) => None,
            Kind::Symlink { target, index } => match self.find(&target)? {
                Kind::Simple(c) => Some(c.sum(index)),
                Kind::Combined(c) => Some(c.sum(index).0),
                _ => None,
            },
        }
    }

    /// The whole directory, in order of creation.
    pub fn entries(&self) -> Vec<Entry> {
        lock(&self.entries).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_preceded_by_its_length() {
        let counters = Counters::new(1 << 30).unwrap();
        let simple = counters.simple("/a", 100).unwrap();
        simple.ensure(3);
        counters.ensure_threads(2).unwrap();
        simple.add(1, 2, 7);
        let before = counters.generation();
        simple.ensure(5);
        simple.ensure(4);
        assert_eq!(counters.generation(), before + 1, "only a growing table is a change");
        for thread in 0..2 {
            let at = simple.row(thread).unwrap().offset();
            let mut bytes = [0; 32];
            counters.segment().read_bytes(at - 8, &mut bytes).unwrap();
            assert_eq!(bytes[..4], 5u32.to_le_bytes());
            assert_eq!(bytes[24..], [7 * thread as u8, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(at % 64, 0);
        }
    }

    #[test]
    fn a_shown_number_changes_in_the_segment_until_it_is_hidden() {
        let counters = Counters::new(1 << 20).unwrap();
        let piece = counters.segment().alloc_u64s(8).unwrap();
        let number = counters.gauge("/g").unwrap();
        number.set(4);
        number.show_at(&piece, 3);
        let seen = || piece[3].load(Ordering::Relaxed);
        assert_eq!(seen(), 4);
        counters.gauge("/g").unwrap().set(5);
        assert_eq!(seen(), 5);
        number.hide();
        number.set(6);
        assert_eq!((seen(), number.get()), (5, 6));
    }

    #[test]
    fn the_observer_hears_of_every_change_of_structure() {
        let counters = Counters::new(1 << 20).unwrap();
        let heard = Arc::new(AtomicU64::new(0));
        let ear = Arc::clone(&heard);
        assert!(counters.observe(move || {
            ear.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(!counters.observe(|| ()));
        let names = counters.names("/names");
        names.set(1, "x");
        names.set(1, "x");
        counters.remove_prefix("/names");
        assert_eq!(heard.load(Ordering::Relaxed), 3);
    }
}
