//! Counters: kept per thread in shared memory, added up when somebody looks.
//!
//! Each thread owns one row of every counter and is the only one to write it, with a plain load and store; rows never
//! move (address space for the largest table is reserved at once), so growing needs no lock.
//! [`Counters`] is the directory: names to counters. The stats segment publishes it in VPP's layout, `show`
//! commands read it directly.

mod node_rows;
mod rows;
mod slots;

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_infra::{SharedSegment, U64Slice};

pub(crate) use node_rows::NodeRows;
pub use rows::{Combined, GrownCounter, Growth, IN_PROGRESS, Row, Simple};
use rows::{DirectoryVersion, Rows};
pub use slots::Directory;
use slots::Slots;

/// Words kept at the segment's start.
const HEADER_WORDS: usize = 512;
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
        target: Arc<str>,
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
pub struct Names(Arc<NameVector>);

#[derive(Debug, Default)]
struct NameVector {
    all: Mutex<Vec<Arc<str>>>,
    pulse: Arc<DirectoryVersion>,
}

impl Names {
    /// Names an object.
    pub fn set(&self, index: usize, name: &str) {
        let mut names = lock(&self.0.all);
        if names.len() <= index {
            names.resize(index + 1, Arc::default());
        }
        if let Some(slot) = names.get_mut(index).filter(|slot| ***slot != *name) {
            *slot = name.into();
            drop(names);
            self.0.pulse.beat();
        }
    }

    /// All names.
    pub fn all(&self) -> Vec<Arc<str>> {
        lock(&self.0.all).clone()
    }

    /// Whether both are the same vector.
    pub fn is(&self, other: &Names) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name and what it stands for.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path-like name: `/if/rx`.
    pub name: Arc<str>,
    /// What it is.
    pub kind: Kind,
}

/// The directory of all counters of one router.
#[derive(Debug)]
pub struct Counters {
    segment: SharedSegment,
    header: U64Slice,
    entries: Mutex<Slots>,
    threads: AtomicUsize,
    name_vectors: Mutex<Vec<Names>>,
    /// Beats whenever a name comes or goes or a table gets longer.
    pulse: Arc<DirectoryVersion>,
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
        let pulse = DirectoryVersion { header: header.clone().into(), ..DirectoryVersion::default() };
        let counters = Counters {
            segment,
            header,
            entries: Mutex::default(),
            threads: AtomicUsize::new(1),
            name_vectors: Mutex::default(),
            pulse: Arc::new(pulse),
        };
        Ok(Arc::new(counters))
    }

    /// The memory the counters live in.
    pub fn segment(&self) -> &SharedSegment {
        &self.segment
    }

    /// The first page of the segment, for the publisher of the directory.
    pub fn header(&self) -> &U64Slice {
        &self.header
    }

    /// A number that changes with the directory's structure.
    pub fn generation(&self) -> u64 {
        self.pulse.count.load(Ordering::Acquire)
    }

    /// Counters that have got longer since this was asked last and that clients do not see so, with their lengths now.
    pub fn take_grown(&self) -> Vec<GrownCounter> {
        self.pulse.take_grown()
    }

    /// Says when clients see that a counter has got longer.
    pub fn set_growth(&self, growth: Growth) {
        self.pulse.growth.store(growth as u8, Ordering::Release);
        if growth != Growth::Awaited {
            self.pulse.set_in_progress(false);
        }
    }

    /// Names do not come soon any more: clients do not wait for them.
    pub fn stop_waiting(&self) {
        if self.pulse.grows(Growth::Awaited) {
            self.set_growth(Growth::AtOnce);
        }
    }

    /// A directory of this generation is published: clients wait no more, unless there has been a change since.
    pub fn published(&self, generation: u64) {
        if self.generation() == generation || !self.pulse.grows(Growth::Awaited) {
            self.pulse.set_in_progress(false);
        }
    }

    /// All vectors of names as they are now.
    pub fn name_vectors(&self) -> Vec<(Names, Vec<Arc<str>>)> {
        lock(&self.name_vectors).iter().map(|names| (names.clone(), names.all())).collect()
    }

    /// Tells readers of the directory that a table got longer or a name vector changed.
    pub fn touch(&self) {
        self.pulse.beat();
    }

    /// Sets the observer that is called for every change of the structure, at once and on the thread that makes it.
    /// Only the first one is; false for others.
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
        let names = Names(Arc::new(NameVector { pulse: Arc::clone(&self.pulse), ..NameVector::default() }));
        lock(&self.name_vectors).push(names.clone());
        self.add(name, Kind::Names(names.clone()));
        names
    }

    /// A name for one object of another counter.
    pub fn symlink(&self, name: &str, target: &str, index: usize) {
        // Thousands of names lead to the same few counters: they share the target's name.
        let mut entries = lock(&self.entries);
        let known = entries.name(target);
        entries.put(name, Kind::Symlink { target: known.unwrap_or_else(|| target.into()), index });
        drop(entries);
        self.touch();
    }

    fn add(&self, name: &str, kind: Kind) {
        lock(&self.entries).put(name, kind);
        self.touch();
    }

    /// Takes away all names that begin with `prefix`.
    pub fn remove_prefix(&self, prefix: &str) {
        if lock(&self.entries).remove_prefix(prefix) {
            self.touch();
        }
    }

    /// What a name stands for.
    pub fn find(&self, name: &str) -> Option<Kind> {
        lock(&self.entries).get(name).map(|e| e.kind.clone())
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

    /// The whole directory. The names a router begins with stand first, in order of creation.
    pub fn entries(&self) -> Vec<Entry> {
        lock(&self.entries).iter().cloned().collect()
    }

    /// The whole directory, to be looked at later or elsewhere.
    pub fn directory(&self) -> Directory {
        lock(&self.entries).directory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_preceded_by_its_length_and_clients_wait_until_it_has_a_name() {
        let counters = Counters::new(1 << 30).unwrap();
        let simple = counters.simple("/a", 100).unwrap();
        simple.ensure(3);
        counters.ensure_threads(2).unwrap();
        simple.add(1, 2, 7);
        let in_progress = || counters.header().get(IN_PROGRESS).unwrap().load(Ordering::Relaxed);
        let before = counters.generation();
        simple.ensure(5);
        simple.ensure(4);
        assert_eq!(counters.generation(), before + 1, "only a growing table is a change");
        assert_eq!(in_progress(), 0, "nothing is published");
        for thread in 0..2 {
            let at = simple.row(thread).unwrap().offset();
            let mut bytes = [0; 32];
            counters.segment().read_bytes(at - 8, &mut bytes).unwrap();
            assert_eq!(bytes[..4], 5u32.to_le_bytes());
            assert_eq!(bytes[24..], [7 * thread as u8, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(at % 64, 0);
        }
        counters.set_growth(Growth::Awaited);
        simple.ensure(9);
        assert_eq!(in_progress(), 1);
        counters.published(before);
        assert_eq!(in_progress(), 1, "there has been a change since");
        counters.published(counters.generation());
        assert_eq!(in_progress(), 0);
        simple.ensure(10);
        counters.set_growth(Growth::WithNames);
        assert_eq!(in_progress(), 0, "it may take a while");
        let shown = |thread| {
            let mut bytes = [0; 4];
            counters.segment().read_bytes(simple.row(thread).unwrap().offset() - 8, &mut bytes).unwrap();
            u32::from_le_bytes(bytes)
        };
        simple.ensure(11);
        let grown = counters.take_grown();
        simple.ensure(12);
        assert_eq!(shown(0), 10, "clients see it together with names");
        grown.iter().for_each(GrownCounter::show);
        assert_eq!((grown.len(), shown(0), shown(1)), (1, 11, 11), "as it was when it was taken note of");
        counters.ensure_threads(3).unwrap();
        assert_eq!(shown(2), 11);
        // An older note shortens nothing.
        let later = counters.take_grown();
        later.iter().for_each(GrownCounter::show);
        grown.iter().for_each(GrownCounter::show);
        assert_eq!((later.len(), shown(0), counters.take_grown().len()), (1, 12, 0));
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
    fn a_name_that_comes_takes_the_place_of_one_that_went() {
        let counters = Counters::new(1 << 30).unwrap();
        let names = || counters.entries().iter().map(|e| e.name.to_string()).collect::<Vec<_>>();
        counters.scalar("/first").unwrap();
        for name in ["/a/x", "/a/y", "/ab", "/b"] {
            counters.symlink(name, "/first", 0);
        }
        counters.remove_prefix("/a/");
        let before = counters.generation();
        counters.remove_prefix("/a/");
        assert_eq!(counters.generation(), before, "nothing went");
        assert_eq!(names(), ["/first", "/ab", "/b"]);
        counters.symlink("/c", "/b", 1);
        counters.symlink("/b", "/ab", 2);
        assert_eq!(names(), ["/first", "/c", "/ab", "/b"]);
        assert!(matches!(counters.find("/b"), Some(Kind::Symlink { index: 2, .. })));
        assert!(counters.find("/a/x").is_none());
    }

    #[test]
    fn a_directory_stays_as_it_was_taken() {
        let counters = Counters::new(1 << 20).unwrap();
        counters.scalar("/first").unwrap();
        for number in 0..200 {
            counters.symlink(&format!("/a/{number}"), "/first", 0);
        }
        let (before, names) = (counters.directory(), counters.entries().len());
        counters.remove_prefix("/a/1");
        counters.symlink("/b", "/first", 7);
        assert_eq!((before.len(), before.iter().count()), (names, names));
        assert!(before.iter().all(|entry| &*entry.name != "/b"));
        let after = counters.directory();
        assert_eq!((after.len(), after.iter().count()), (names - 111 + 1, names - 111 + 1));
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
