//! Puts directories into the segment, one after the other, so that readers never see half of one.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_graph::counter::{Counters, Directory, Entry, GrownCounter, IN_PROGRESS, Names, Number};
use shoal_infra::{SharedSegment, U64Slice};

use crate::image::{BASE, Image};

/// The layout's version.
const VERSION: u64 = 2;
/// How long a replaced directory stays readable: clients may be in the middle of one.
const KEPT: Duration = Duration::from_secs(5);

/// Words of the header.
mod header {
    pub const VERSION: usize = 0;
    pub const BASE: usize = 1;
    pub const EPOCH: usize = 2;
    pub const DIRECTORY: usize = 4;
}

/// A directory that is to be laid out, on any thread.
#[derive(Debug)]
pub struct Plan {
    generation: u64,
    threads: usize,
    entries: Directory,
    per_node: bool,
    segment: SharedSegment,
    /// The vectors of names when this was planned: counters are as long as these.
    names: Vec<(Names, Vec<Arc<str>>)>,
}

/// A directory in the segment that no header points to yet.
#[derive(Debug)]
pub struct Laid {
    generation: u64,
    piece: U64Slice,
    numbers: Vec<(Number, usize)>,
    left_out: usize,
}

impl Plan {
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Writes the directory into the segment.
    ///
    /// # Errors
    /// The segment is full.
    pub fn lay_out(self) -> io::Result<Laid> {
        let entries: Vec<&Entry> = self.entries.iter().filter(|entry| self.wanted(entry)).collect();
        let image = Image::new(self.threads, &entries, &self.names);
        // Sizes are powers of two, so that pieces of older directories fit newer ones.
        let piece = self.segment.alloc_u64s(image.len().next_power_of_two()).map_err(io::Error::other)?;
        let (numbers, left_out) = (image.numbers().to_vec(), image.left_out());
        for (cell, word) in piece.iter().zip(image.words_at(piece.offset())) {
            cell.store(word, Ordering::Relaxed);
        }
        Ok(Laid { generation: self.generation, piece, numbers, left_out })
    }

    fn wanted(&self, entry: &Entry) -> bool {
        self.per_node || !(entry.name.starts_with("/sys/node/") || entry.name.starts_with("/nodes/"))
    }
}

/// The published directory of one router's counters.
#[derive(Debug)]
pub struct Publisher {
    counters: Arc<Counters>,
    per_node: bool,
    /// The generation that is published.
    generation: Option<u64>,
    current: Option<U64Slice>,
    /// The numbers that show in the current directory.
    numbers: Vec<Number>,
    retired: VecDeque<(Time, U64Slice)>,
    /// Counters that are longer as of a generation than clients see them.
    grown: VecDeque<(u64, Vec<GrownCounter>)>,
    warned: bool,
}

impl Publisher {
    /// Nothing is published yet. `per_node` lets the counters of every node through.
    pub fn new(counters: Arc<Counters>, per_node: bool) -> Self {
        let (current, numbers, retired, grown) = (None, Vec::new(), VecDeque::new(), VecDeque::new());
        Publisher { counters, per_node, generation: None, current, numbers, retired, grown, warned: false }
    }

    /// What is to be laid out; nothing if what is published is what there is.
    pub fn plan(&mut self) -> Option<Plan> {
        let generation = self.counters.generation();
        if self.generation == Some(generation) {
            return None;
        }
        let grown = self.counters.take_grown();
        if !grown.is_empty() {
            self.grown.push_back((generation, grown));
        }
        Some(Plan {
            generation,
            threads: self.counters.threads(),
            entries: self.counters.directory(),
            per_node: self.per_node,
            segment: self.counters.segment().clone(),
            names: self.counters.name_vectors(),
        })
    }

    /// Puts a directory in the place of the one before, unless that is younger.
    pub fn publish(&mut self, laid: Laid, now: Time) {
        self.forget(now);
        if self.generation.is_some_and(|there| there > laid.generation) {
            self.counters.segment().free(laid.piece);
            return;
        }
        if laid.left_out > 0 && !self.warned {
            self.warned = true;
            tracing::warn!("{} counters have no place in the stats segment: name or target", laid.left_out);
        }
        self.numbers.drain(..).for_each(|number| number.hide());
        for (number, word) in laid.numbers {
            number.show_at(&laid.piece, word);
            self.numbers.push(number);
        }
        self.swap(laid.piece.offset() as u64 + 8, laid.generation);
        if let Some(before) = self.current.replace(laid.piece) {
            self.retired.push_back((now, before));
        }
        self.generation = Some(laid.generation);
    }

    /// How often the directory was replaced, as clients see it.
    pub fn epoch(&self) -> u64 {
        self.word(header::EPOCH)
    }

    /// Clients look at `in_progress` and the epoch before and after they read, and read again if either moved.
    fn swap(&mut self, directory: u64, generation: u64) {
        self.set(IN_PROGRESS, 1);
        fence(Ordering::SeqCst);
        // A client that finds more counted than named takes nothing for named.
        while let Some((_, grown)) = self.grown.pop_front_if(|(since, _)| *since <= generation) {
            grown.iter().for_each(GrownCounter::show);
        }
        self.set(header::VERSION, VERSION);
        self.set(header::BASE, BASE);
        self.set(header::DIRECTORY, BASE + directory);
        self.set(header::EPOCH, self.epoch() + 1);
        fence(Ordering::SeqCst);
        self.counters.published(generation);
    }

    fn word(&self, at: usize) -> u64 {
        self.counters.header().get(at).map_or(0, |w| w.load(Ordering::Relaxed))
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.counters.header().get(at) {
            word.store(value, Ordering::Release);
        }
    }

    /// Frees what was replaced long enough ago.
    pub fn forget(&mut self, now: Time) {
        while let Some((_, piece)) = self.retired.pop_front_if(|(since, _)| now.since(*since) >= KEPT) {
            self.counters.segment().free(piece);
        }
    }
}
