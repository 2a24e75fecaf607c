//! Puts directories into the segment, one after the other, so that readers never see half of one.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_graph::counter::{Counters, Entry, Number};
use shoal_infra::U64Slice;

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
    pub const IN_PROGRESS: usize = 3;
    pub const DIRECTORY: usize = 4;
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
    warned: bool,
}

impl Publisher {
    /// Nothing is published yet. `per_node` lets the counters of every node through.
    pub fn new(counters: Arc<Counters>, per_node: bool) -> Self {
        let (current, numbers, retired) = (None, Vec::new(), VecDeque::new());
        Publisher { counters, per_node, generation: None, current, numbers, retired, warned: false }
    }

    /// Publishes the directory as it is now, if it is not the one that is published; tells whether it was not.
    ///
    /// # Errors
    /// The segment is full; the directory before stays.
    pub fn refresh(&mut self, now: Time) -> io::Result<bool> {
        self.forget(now);
        let generation = self.counters.generation();
        if self.generation == Some(generation) {
            return Ok(false);
        }
        let image = Image::new(&self.counters, |entry| self.wanted(entry));
        if image.left_out() > 0 && !self.warned {
            self.warned = true;
            tracing::warn!(
                "{} counters have no place in the stats segment: name or target",
                image.left_out()
            );
        }
        let segment = self.counters.segment();
        // Sizes are powers of two, so that pieces of older directories fit newer ones.
        let piece = segment.alloc_u64s(image.len().next_power_of_two()).map_err(io::Error::other)?;
        let numbers = image.numbers().to_vec();
        for (cell, word) in piece.iter().zip(image.words_at(piece.offset())) {
            cell.store(word, Ordering::Relaxed);
        }
        self.numbers.drain(..).for_each(|number| number.hide());
        for (number, word) in numbers {
            number.show_at(&piece, word);
            self.numbers.push(number);
        }
        self.swap(piece.offset() as u64 + 8);
        if let Some(before) = self.current.replace(piece) {
            self.retired.push_back((now, before));
        }
        self.generation = Some(generation);
        Ok(true)
    }

    /// How often the directory was replaced, as clients see it.
    pub fn epoch(&self) -> u64 {
        self.word(header::EPOCH)
    }

    fn wanted(&self, entry: &Entry) -> bool {
        self.per_node || !(entry.name.starts_with("/sys/node/") || entry.name.starts_with("/nodes/"))
    }

    /// Clients look at `in_progress` and the epoch before and after they read, and read again if either moved.
    fn swap(&self, directory: u64) {
        self.set(header::IN_PROGRESS, 1);
        fence(Ordering::SeqCst);
        self.set(header::VERSION, VERSION);
        self.set(header::BASE, BASE);
        self.set(header::DIRECTORY, BASE + directory);
        self.set(header::EPOCH, self.epoch() + 1);
        fence(Ordering::SeqCst);
        self.set(header::IN_PROGRESS, 0);
    }

    fn word(&self, at: usize) -> u64 {
        self.counters.header().get(at).map_or(0, |w| w.load(Ordering::Relaxed))
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.counters.header().get(at) {
            word.store(value, Ordering::Release);
        }
    }

    fn forget(&mut self, now: Time) {
        while let Some((_, piece)) = self.retired.pop_front_if(|(since, _)| now.since(*since) >= KEPT) {
            self.counters.segment().free(piece);
        }
    }
}
