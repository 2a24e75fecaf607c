//! The directory of one epoch, and the values behind its names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::segment::{Segment, until_zero};
use crate::{Counter, Error, Histogram, Pair, Value};

/// Words of an entry: type, value, 128 bytes of name.
const ENTRY_WORDS: usize = 18;
/// Entries read at a time.
const PIECE: usize = 256;
/// Most threads a counter may have rows of.
const MOST_THREADS: usize = 4096;

/// The types of names, by VPP's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One number that goes up.
    Scalar,
    /// Events by thread and object.
    Simple,
    /// Packets and bytes by thread and object.
    Combined,
    /// Names of objects.
    Names,
    /// A column of another counter.
    Symlink,
    /// Counts by size.
    Histogram,
    /// One number that goes up and down.
    Gauge,
    /// Any other.
    Other(u32),
}

impl Kind {
    fn of(number: u32) -> Kind {
        match number {
            1 => Kind::Scalar,
            2 => Kind::Simple,
            3 => Kind::Combined,
            4 => Kind::Names,
            6 => Kind::Symlink,
            7 => Kind::Histogram,
            9 => Kind::Gauge,
            other => Kind::Other(other),
        }
    }

    /// What VPP's clients call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Scalar => "scalar",
            Kind::Simple => "simple",
            Kind::Combined => "combined",
            Kind::Names => "name",
            Kind::Symlink => "symlink",
            Kind::Histogram => "histogram",
            Kind::Gauge => "gauge",
            Kind::Other(_) => "other",
        }
    }
}

/// A name of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Path-like name: `/if/rx`.
    pub name: Arc<str>,
    /// What it stands for.
    pub kind: Kind,
}

impl Name {
    /// The name in an entry of the directory.
    fn of(entry: &[u64; ENTRY_WORDS]) -> Name {
        let [kind, _, name @ ..] = entry;
        // Nothing is read of what has been removed: type 5 is an empty place, 0 is none.
        let used = !matches!(*kind as u32, 0 | 5);
        let mut bytes = [0; (ENTRY_WORDS - 2) * 8];
        let (texts, _) = bytes.as_chunks_mut::<8>();
        texts.iter_mut().zip(name).for_each(|(to, from)| *to = from.to_ne_bytes());
        let name = if used { until_zero(&bytes) } else { Cow::default() };
        Name { name: (&*name).into(), kind: Kind::of(*kind as u32) }
    }
}

/// All names of one epoch, by their place; without a name where nothing is.
pub(crate) struct Directory {
    pub epoch: u64,
    /// Where its first entry lies in the segment.
    at: u64,
    pub names: Vec<Name>,
}

impl Directory {
    /// Reads the directory at a pointer.
    pub(crate) fn read(segment: &Segment, epoch: u64, pointer: u64) -> Result<Directory, Error> {
        let (at, len) = segment.vector(pointer, ENTRY_WORDS as u64 * 8)?;
        let mut names = Vec::new();
        // Piece by piece: a long directory is several times as large as its names.
        for first in (0..len).step_by(PIECE) {
            let count = PIECE.min(len - first);
            let words = segment.words(at + (first * ENTRY_WORDS * 8) as u64, count * ENTRY_WORDS)?;
            let (entries, _) = words.as_chunks::<ENTRY_WORDS>();
            names.extend(entries.iter().map(Name::of));
        }
        Ok(Directory { epoch, at, names })
    }

    /// The values of the names that are wanted, in the directory's order.
    pub(crate) fn values(
        &self,
        segment: &Segment,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Counter>, Error> {
        let mut tables = Tables { segment, directory: self, known: HashMap::new() };
        let there = self.names.iter().enumerate().filter(|(_, n)| !n.name.is_empty() && wanted(&n.name));
        let mut counters = Vec::new();
        for (at, name) in there {
            if let Some(value) = tables.value(name.kind, self.word(segment, at)?)? {
                counters.push(Counter { name: Arc::clone(&name.name), value });
            }
        }
        Ok(counters)
    }

    /// The number of the entry at a place, if it is one: a scalar that has a place of its own by contract.
    pub(crate) fn number(&self, segment: &Segment, entry: usize) -> Result<u64, Error> {
        match self.names.get(entry) {
            Some(name) if name.kind == Kind::Scalar => self.word(segment, entry),
            _ => Ok(0),
        }
    }

    /// The value word of an entry.
    fn word(&self, segment: &Segment, entry: usize) -> Result<u64, Error> {
        let at = self.at + (entry * ENTRY_WORDS + 1) as u64 * 8;
        segment.word(at)
    }
}

/// A counter that others lead to, copied once however many do.
enum Table {
    Simple(Vec<Vec<u64>>),
    Combined(Vec<Vec<Pair>>),
}

struct Tables<'a> {
    segment: &'a Segment,
    directory: &'a Directory,
    known: HashMap<usize, Rc<Table>>,
}

impl Tables<'_> {
    /// What stands behind an entry's value word; `None` for what leads nowhere yet.
    fn value(&mut self, kind: Kind, word: u64) -> Result<Option<Value>, Error> {
        let segment = self.segment;
        let is_vector = matches!(kind, Kind::Simple | Kind::Combined | Kind::Names | Kind::Histogram);
        if is_vector && word == 0 {
            return Ok(None);
        }
        Ok(Some(match kind {
            Kind::Scalar => Value::Scalar(word),
            Kind::Gauge => Value::Gauge(word),
            Kind::Simple => Value::Simple(rows(segment, word)?),
            Kind::Combined => Value::Combined(pairs(segment, word)?),
            Kind::Names => Value::Names(names(segment, word)?),
            Kind::Histogram => Value::Histogram(rows(segment, word)?.into_iter().map(histogram).collect()),
            Kind::Symlink => {
                let (target, column) = ((word & 0xffff_ffff) as usize, (word >> 32) as usize);
                match &*self.table(target)? {
                    Table::Simple(threads) => Value::SimpleLink(column_of(threads, column)),
                    Table::Combined(threads) => Value::CombinedLink(column_of(threads, column)),
                }
            }
            Kind::Other(number) => Value::Other(number),
        }))
    }

    fn table(&mut self, at: usize) -> Result<Rc<Table>, Error> {
        if let Some(known) = self.known.get(&at) {
            return Ok(Rc::clone(known));
        }
        let target = self.directory.names.get(at).ok_or(Error::Malformed("a symlink leads nowhere"))?;
        let word = self.directory.word(self.segment, at)?;
        let table = Rc::new(match target.kind {
            Kind::Simple => Table::Simple(rows(self.segment, word)?),
            Kind::Combined => Table::Combined(pairs(self.segment, word)?),
            _ => return Err(Error::Malformed("a symlink leads to no table")),
        });
        self.known.insert(at, Rc::clone(&table));
        Ok(table)
    }
}

/// One object's numbers, thread by thread; zero where a thread's row is shorter.
fn column_of<T: Copy + Default>(threads: &[Vec<T>], column: usize) -> Vec<T> {
    threads.iter().map(|row| row.get(column).copied().unwrap_or_default()).collect()
}

/// Pointers to the threads' rows.
fn threads(segment: &Segment, pointer: u64) -> Result<Vec<u64>, Error> {
    let pointers = segment.vector_words(pointer, 1)?;
    if pointers.len() > MOST_THREADS {
        Err(Error::Malformed("a counter has too many threads"))
    } else {
        Ok(pointers)
    }
}

fn rows(segment: &Segment, pointer: u64) -> Result<Vec<Vec<u64>>, Error> {
    threads(segment, pointer)?.into_iter().map(|row| segment.vector_words(row, 1)).collect()
}

fn pairs(segment: &Segment, pointer: u64) -> Result<Vec<Vec<Pair>>, Error> {
    let row = |pointer: u64| {
        let words = segment.vector_words(pointer, 2)?;
        let (pairs, _) = words.as_chunks::<2>();
        Ok(pairs.iter().map(|[packets, bytes]| Pair { packets: *packets, bytes: *bytes }).collect())
    };
    threads(segment, pointer)?.into_iter().map(row).collect()
}

fn names(segment: &Segment, pointer: u64) -> Result<Vec<Option<String>>, Error> {
    let one = |text: u64| (text != 0).then(|| segment.text(text)).transpose();
    segment.vector_words(pointer, 1)?.into_iter().map(one).collect()
}

fn histogram(row: Vec<u64>) -> Histogram {
    let mut words = row.into_iter();
    Histogram { first: words.next().unwrap_or_default(), bins: words.collect() }
}
