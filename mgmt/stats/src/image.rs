//! The directory as words: what a client finds behind the header's directory pointer.
//!
//! Everything of one generation lies in one piece of the segment, so that it is replaced and forgotten as one:
//!
//! ```text
//! directory vector | per counter: vector of pointers to the threads' rows | per name vector: pointers, strings
//! ```
//!
//! A vector's address is that of its first element; its length stands in the four bytes at -8. Pointers are
//! offsets from the segment's start plus [`BASE`]. Rows are not part of the image: they stay where they are.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_graph::counter::{Entry, Kind, Names, Number, Row};

/// The address at which clients are told the segment lies here. Any number would do as long as it is not 0.
pub const BASE: u64 = 0x1_0000_0000;
/// Words of a directory entry: type, value, 128 bytes of name.
pub const ENTRY_WORDS: usize = 18;
/// Longest name, without the zero that ends it.
pub const MAX_NAME: usize = 127;

/// The rest of a vector's header word: the size of the header, in units of eight bytes.
const VECTOR: u64 = 1 << 32;

/// Types of directory entries.
mod ty {
    pub const SCALAR: u64 = 1;
    pub const SIMPLE: u64 = 2;
    pub const COMBINED: u64 = 3;
    pub const NAMES: u64 = 4;
    pub const SYMLINK: u64 = 6;
    pub const GAUGE: u64 = 9;
}

/// A directory, laid out for a place in the segment that it does not know yet.
#[derive(Debug)]
pub struct Image {
    words: Vec<u64>,
    /// Places in `words` that hold an offset within the image and become a pointer.
    local: Vec<usize>,
    /// Numbers, and the word that shows each.
    numbers: Vec<(Number, usize)>,
    /// Entries left out because no client could read their name, or their target is not there.
    left_out: usize,
}

impl Image {
    /// Lays out the entries, with the rows of so many threads, and the vectors of names as they were at one time.
    pub fn new(threads: usize, entries: &[&Entry], names: &[(Names, Vec<Arc<str>>)]) -> Self {
        let total = entries.len();
        let (shown, index) = placed(entries);
        let mut image = Image {
            words: Vec::with_capacity(shown.len() * (ENTRY_WORDS + 4) + 64),
            local: Vec::new(),
            numbers: Vec::new(),
            left_out: total - shown.len(),
        };
        image.words.push(VECTOR | shown.len() as u64);
        for entry in &shown {
            image.entry(entry, &index);
        }
        // Behind the directory, so that an entry's place follows from its number.
        for (i, entry) in shown.iter().enumerate() {
            let at = value_word(i);
            match &entry.kind {
                Kind::Simple(c) => image.rows(at, (0..threads).filter_map(|t| c.row(t))),
                Kind::Combined(c) => image.rows(at, (0..threads).filter_map(|t| c.row(t))),
                Kind::Names(wanted) => {
                    let known = names.iter().find(|(one, _)| one.is(wanted));
                    image.names(at, known.map_or(&[], |(_, all)| all));
                }
                Kind::Scalar(_) | Kind::Gauge(_) | Kind::Symlink { .. } => {}
            }
        }
        image
    }

    /// How many words it takes.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Never: the directory's header is always there.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Entries left out because no client could read them.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Numbers, and the word that shows each.
    pub fn numbers(&self) -> &[(Number, usize)] {
        &self.numbers
    }

    /// The words for a place `offset` bytes behind the segment's start.
    pub fn words_at(mut self, offset: usize) -> Vec<u64> {
        for at in std::mem::take(&mut self.local) {
            if let Some(word) = self.words.get_mut(at) {
                *word += BASE + offset as u64;
            }
        }
        self.words
    }

    fn entry(&mut self, entry: &Entry, index: &HashMap<&str, usize>) {
        let at = self.words.len();
        let (kind, value) = match &entry.kind {
            Kind::Simple(_) => (ty::SIMPLE, 0),
            Kind::Combined(_) => (ty::COMBINED, 0),
            Kind::Names(_) => (ty::NAMES, 0),
            Kind::Scalar(n) => (ty::SCALAR, self.number(n, at + 1)),
            Kind::Gauge(n) => (ty::GAUGE, self.number(n, at + 1)),
            Kind::Symlink { target, index: column } => {
                let target = index.get(&**target).copied().unwrap_or(0) as u64;
                (ty::SYMLINK, target | (*column as u64) << 32)
            }
        };
        self.words.extend([kind, value]);
        push_text(&mut self.words, &entry.name);
        self.words.resize(at + ENTRY_WORDS, 0);
    }

    fn number(&mut self, number: &Number, at: usize) -> u64 {
        self.numbers.push((number.clone(), at));
        number.get()
    }

    /// A vector of pointers to rows, pointed to from the word at `from`.
    fn rows<'a>(&mut self, from: usize, rows: impl Iterator<Item = &'a Row>) {
        let pointers: Vec<u64> = rows.map(|row| BASE + row.offset() as u64).collect();
        self.vector(from, pointers.len());
        self.words.extend(pointers);
    }

    /// A vector of pointers to strings. An empty name is a hole, a null pointer.
    fn names(&mut self, from: usize, names: &[Arc<str>]) {
        self.vector(from, names.len());
        let first = self.words.len();
        self.words.resize(first + names.len(), 0);
        for (i, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            self.vector(first + i, name.len() + 1);
            push_text(&mut self.words, name);
        }
    }

    /// Begins a vector of `len` elements at the end and makes the word at `from` point to it.
    fn vector(&mut self, from: usize, len: usize) {
        self.words.push(VECTOR | len as u64);
        let offset = self.words.len() as u64 * 8;
        if let Some(word) = self.words.get_mut(from) {
            *word = offset;
            self.local.push(from);
        }
    }
}

/// The word with the value of the directory's entry number `index`.
fn value_word(index: usize) -> usize {
    1 + index * ENTRY_WORDS + 1
}

/// The entries that clients can read, in the order of the directory, and the places in it of those that others may
/// lead to. Left out are names that do not fit, and symlinks whose target has no such column.
fn placed<'a>(entries: &[&'a Entry]) -> (Vec<&'a Entry>, HashMap<&'a str, usize>) {
    let named = |e: &&&Entry| !e.name.is_empty() && e.name.len() <= MAX_NAME && !e.name.contains('\0');
    let columns: HashMap<&str, usize> = entries
        .iter()
        .filter(named)
        .filter_map(|e| match &e.kind {
            Kind::Simple(c) => Some((&*e.name, c.len())),
            Kind::Combined(c) => Some((&*e.name, c.len())),
            _ => None,
        })
        .collect();
    let leads_somewhere = |e: &&&Entry| match &e.kind {
        Kind::Symlink { target, index } => columns.get(&**target).is_some_and(|len| index < len),
        _ => true,
    };
    let shown: Vec<&Entry> = entries.iter().filter(named).filter(leads_somewhere).copied().collect();
    let places = shown.iter().enumerate().filter(|(_, e)| columns.contains_key(&*e.name));
    let index = places.map(|(at, e)| (&*e.name, at)).collect();
    (shown, index)
}

/// A text and at least one zero byte, in whole words.
fn push_text(words: &mut Vec<u64>, text: &str) {
    let (whole, rest) = text.as_bytes().as_chunks::<8>();
    words.extend(whole.iter().map(|c| u64::from_ne_bytes(*c)));
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    words.push(u64::from_ne_bytes(last));
}
