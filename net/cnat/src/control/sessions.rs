//! Sessions: looked at, counted, ended.

use std::collections::BTreeMap;

use super::{Cnat, CnatError};
use crate::sessions::{Record, tick};

/// Places of a worker's table looked at in one go.
const PLACES_AT_ONCE: u32 = 4096;

/// Sessions of a worker, some at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// The worker.
    pub thread: usize,
    /// Where to go on.
    pub from: u32,
}

impl Cnat {
    /// How many sessions each worker has.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn counts(&self) -> Result<BTreeMap<usize, usize>, CnatError> {
        Ok(self.graph.on_every_state(&self.keeping, |_, sessions| sessions.len())?)
    }

    /// The first slice.
    pub fn first_slice(&self) -> Option<Slice> {
        let thread = self.keeping.feature().workers().first().copied()?;
        Some(Slice { thread, from: 0 })
    }

    /// Some sessions, and where to go on; packets are never kept waiting for more than some thousand places.
    ///
    /// # Errors
    /// The thread does not answer.
    pub fn slice(&self, slice: Slice) -> Result<(Vec<Record>, Option<Slice>), CnatError> {
        let now = tick(self.graph.clock().now());
        let (records, next) = self.graph.on_state(&self.keeping, slice.thread, move |_, sessions| {
            let end = slice.from.saturating_add(PLACES_AT_ONCE);
            let some = (slice.from..end.min(sessions.places())).filter_map(|i| sessions.record(i, now));
            (some.collect(), (end < sessions.places()).then_some(end))
        })?;
        let workers = self.keeping.feature().workers();
        let after = workers.iter().skip_while(|thread| **thread != slice.thread).nth(1).copied();
        let next = match next {
            Some(from) => Some(Slice { from, ..slice }),
            None => after.map(|thread| Slice { thread, from: 0 }),
        };
        Ok((records, next))
    }

    /// All sessions.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn sessions(&self) -> Result<Vec<Record>, CnatError> {
        let (mut all, mut next) = (Vec::new(), self.first_slice());
        while let Some(slice) = next {
            let (records, after) = self.slice(slice)?;
            all.extend(records);
            next = after;
        }
        Ok(all)
    }

    /// Ends all sessions; how many that were.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn purge(&self) -> Result<usize, CnatError> {
        let ended = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.purge())?;
        for thread in ended.keys() {
            self.shared.set_sessions(*thread, 0);
        }
        self.shared.sessions();
        Ok(ended.into_values().sum())
    }
}
