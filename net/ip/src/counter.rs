//! What is counted of a family by interface.

use std::io;

use shoal_buffer::MAX_INTERFACES;
use shoal_graph::Graph;
use shoal_graph::counter::Simple;

use crate::IpFamily;

/// The counter of the family's packets that are received, by interface, as clients of the stats segment know it.
///
/// # Errors
/// The stats segment is full.
pub fn received<F: IpFamily>(graph: &Graph) -> io::Result<Simple> {
    graph.counters().simple(F::RECEIVED, MAX_INTERFACES)
}
