//! Packets and bytes by route, for those who ask.
//!
//! A route that counts has in its leaf an adjacency of its own, which counts and leads on to where the route leads. It
//! is no rewrite, so the short way of lookup nodes and superpaths has nothing to ask: routes that do not count pay
//! nothing, and those that do are followed on the lookup nodes' long way.

use std::sync::OnceLock;

use shoal_graph::counter::Combined;

use super::{AdjError, Adjacencies, CAPACITY};
use crate::{Adj, AdjIndex, AdjKind};

/// The counter's name, VPP's.
const NAME: &str = "/net/route/to";

impl Adjacencies {
    /// A new adjacency that counts the packets of a route from zero on and leads to another one, locked once. That one
    /// must be held by somebody as long as this one leads there.
    ///
    /// # Errors
    /// The table or the stats segment is full.
    pub fn create_route_counter(&self, to: AdjIndex) -> Result<AdjIndex, AdjError> {
        if self.table.routes.get().is_none() {
            let made = self.graph.counters().combined(NAME, CAPACITY);
            let made: Combined = made.map_err(|e| AdjError::NoRouteCounter(e.to_string()))?;
            let _ = OnceLock::set(&self.table.routes, made);
        }
        let index = self.create_fixed(Adj::counter(to))?;
        if let Some(counter) = self.table.routes.get() {
            counter.ensure(self.next.get() as usize);
            counter.zero(index.0 as usize);
        }
        Ok(index)
    }

    /// A route's counter leads elsewhere from now on.
    pub fn set_route_counter(&self, index: AdjIndex, to: AdjIndex) {
        self.set_fixed(index, Adj::counter(to));
    }

    /// What a route's counter has counted, packets and bytes from the network header on; `None` when it is none.
    pub fn route_counted(&self, index: AdjIndex) -> Option<(u64, u64)> {
        let counter = self.table.routes.get().filter(|_| self.get(index).kind() == AdjKind::Count)?;
        Some(counter.sum(index.0 as usize))
    }
}
