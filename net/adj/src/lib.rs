//! Adjacencies: what a route ends in, one cache line each, shared by all routes with the same next hop.
//!
//! A trie leaf holds an [`AdjIndex`]; the line behind it says what to do with the packet ([`AdjKind`]) and, for
//! a neighbour, everything needed to send it: the rewrite, the interface, the edge to its output node. When
//! a neighbour resolves or an interface goes, one line changes and all routes follow.
//! [`Adjacencies`] is the control plane and the only writer.
#![forbid(unsafe_code)]

mod buckets;
mod control;
mod data;
mod family;
mod fill;

pub use control::{AdjError, Adjacencies, Counted, Counting, Describe, DvrWatch, Member, Usage};
pub use data::{Adj, AdjIndex, AdjKind, AdjTable, MAX_REWRITE, Reaches};
pub use family::{Family, Link};
pub use fill::{MOST_BUCKETS, Spread};

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "adj",
    description: "Adjacencies: next hops and their rewrites",
    init,
    capacity,
    ..Module::NONE
};

/// Bytes of an adjacency: two records, and its entries in the control plane's tables.
const BYTES_EACH: usize = 2 * size_of::<Adj>() + 160;

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(adjacencies) = control.get::<Adjacencies>() else { return Vec::new() };
    let Usage { adjacencies, most_adjacencies, buckets, most_buckets, .. } = adjacencies.usage();
    vec![
        Capacity::up_to("adjacencies", adjacencies, most_adjacencies, BYTES_EACH),
        Capacity::up_to("balance buckets", buckets, most_buckets, size_of::<u32>()),
    ]
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Adjacencies::new(control)?);
    Ok(())
}
