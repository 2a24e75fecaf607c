//! What does counting into the stats segment cost more than counting into plain memory of the thread?
//!
//! Both functions below are what a node does for each run of packets: add packets and bytes of an interface on the
//! thread's own row. `plain` has its rows in boxes, `shared` in the segment that clients map. Count the instructions:
//!
//! ```sh
//! cargo build --release -p shoal-graph --example counter_cost
//! valgrind --tool=callgrind --callgrind-out-file=/tmp/cost target/release/examples/counter_cost
//! callgrind_annotate /tmp/cost | grep -E 'counter_cost::(plain|shared)'
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // an example

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use shoal_graph::MAX_THREADS;
use shoal_graph::counter::{Combined, Counters};

const OBJECTS: usize = 1 << 16;
const ROUNDS: usize = 1_000_000;

/// Words that stand before a row, as in the segment.
const BEFORE: usize = 8;

type Row = OnceLock<Box<[AtomicU64]>>;

/// Counters as they would be without other readers: a row for each thread, made when the thread starts.
struct Plain {
    threads: [Row; MAX_THREADS],
}

impl Plain {
    #[inline(always)]
    fn one(&self, thread: usize, at: usize, n: u64) {
        let row = self.threads.get(thread).and_then(OnceLock::get);
        if let Some(cell) = row.and_then(|row| row.get(BEFORE + at)) {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn add(&self, thread: usize, index: usize, packets: u64, bytes: u64) {
        self.one(thread, index * 2, packets);
        self.one(thread, index * 2 + 1, bytes);
    }
}

/// As [`Combined`] is a handle of its rows.
struct Handle(Arc<Plain>);

#[inline(never)]
fn plain(Handle(counter): &Handle, thread: usize, index: usize, bytes: u64) {
    counter.add(thread, index, 1, bytes);
}

#[inline(never)]
fn shared(counter: &Combined, thread: usize, index: usize, bytes: u64) {
    counter.add(thread, index, 1, bytes);
}

fn main() {
    let counters = Counters::new(1 << 30).unwrap();
    let there = counters.combined("/if/rx", OBJECTS).unwrap();
    let here = Handle(Arc::new(Plain { threads: [const { OnceLock::new() }; MAX_THREADS] }));
    let row = (0..BEFORE + OBJECTS * 2).map(|_| AtomicU64::new(0)).collect();
    here.0.threads.first().map(|first| first.set(row)).unwrap().unwrap();
    for i in 0..ROUNDS {
        let (thread, index, bytes) = black_box((0, i % 1000, 60));
        plain(&here, thread, index, bytes);
        shared(&there, thread, index, bytes);
    }
    let plain = here.0.threads.first().and_then(OnceLock::get).and_then(|row| row.get(BEFORE + 2));
    println!("{} {:?}", there.sum(1).0, plain);
}
