//! What stands behind a name.

use std::sync::Arc;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// One thread's counts by power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The first bin counts values up to two to this power.
    pub first: u64,
    /// Counts; each bin reaches twice as far as the one before.
    pub bins: Vec<u64>,
}

/// The value of a counter. The outer index of tables is the thread: 0 is the main thread, workers follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One number that goes up.
    Scalar(u64),
    /// One number that goes up and down.
    Gauge(u64),
    /// Events by thread and object.
    Simple(Vec<Vec<u64>>),
    /// Packets and bytes by thread and object.
    Combined(Vec<Vec<Pair>>),
    /// Names by object; an object without one is a hole.
    Names(Vec<Option<String>>),
    /// Events of one object of another counter, by thread.
    SimpleLink(Vec<u64>),
    /// Packets and bytes of one object of another counter, by thread.
    CombinedLink(Vec<Pair>),
    /// Counts by size, by thread.
    Histogram(Vec<Histogram>),
    /// Something else: a ring of events, or a type that this client does not know.
    Other(u32),
}

impl Value {
    /// The sum over threads and objects: events, packets, or the number itself; nothing for names.
    pub fn sum(&self) -> u64 {
        let add = |sum: u64, n: u64| sum.wrapping_add(n);
        match self {
            Value::Scalar(n) | Value::Gauge(n) => *n,
            Value::Simple(threads) => threads.iter().flatten().copied().fold(0, add),
            Value::SimpleLink(threads) => threads.iter().copied().fold(0, add),
            Value::Combined(threads) => threads.iter().flatten().map(|n| n.packets).fold(0, add),
            Value::CombinedLink(threads) => threads.iter().map(|n| n.packets).fold(0, add),
            Value::Histogram(threads) => threads.iter().flat_map(|h| &h.bins).copied().fold(0, add),
            Value::Names(_) | Value::Other(_) => 0,
        }
    }
}

/// A name of the directory with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Path-like name: `/if/rx`.
    pub name: Arc<str>,
    /// What stands behind it.
    pub value: Value,
}
