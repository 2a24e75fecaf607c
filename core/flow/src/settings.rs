//! What a table may take, what it takes, and what refuses.

use std::fmt;

use crate::entry::Handle;
use crate::expiry::{Timeout, Timeouts};
use crate::hash::Seed;
use crate::index::buckets_for;

/// What a table may take, and how long flows live.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) flows: u32,
    pub(crate) bytes: usize,
    pub(crate) timeouts: Timeouts,
    pub(crate) seed: Seed,
    pub(crate) ready: u32,
}

impl Settings {
    /// Most flows of any table: 2^28.
    pub const MOST_FLOWS: u32 = 1 << 28;
    /// The longest timeout: 2^27 - 1 ticks.
    pub const LONGEST_TIMEOUT: u32 = Timeouts::LONGEST;

    /// A table of at most so many flows, whose flows never expire, with a random seed.
    pub fn flows(most: u32) -> Self {
        Settings {
            flows: most,
            bytes: usize::MAX,
            timeouts: Timeouts::never(),
            seed: Seed::random(),
            ready: 0,
        }
    }

    /// At most so many bytes: of index, flows and all else. The limit that is reached first counts.
    pub fn bytes(self, most: usize) -> Self {
        Settings { bytes: most, ..self }
    }

    /// Flows with this timeout end when they had no packet for so many ticks.
    pub fn timeout(mut self, timeout: Timeout, ticks: u32) -> Self {
        self.timeouts.set(timeout, ticks);
        self
    }

    /// Memory for so many flows is fetched from the kernel when the table is made, so that not even a page fault comes between.
    pub fn ready(self, flows: u32) -> Self {
        Settings { ready: flows, ..self }
    }

    /// With this seed. Leave it out but in tests.
    pub fn seed(self, seed: Seed) -> Self {
        Settings { seed, ..self }
    }
}

/// Why a table cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// No table has so many flows.
    Flows {
        /// How many were asked for.
        asked: u32,
    },
    /// Not even one flow fits.
    Bytes {
        /// How many bytes were allowed.
        asked: usize,
        /// How many an empty table with room for one flow takes.
        least: usize,
    },
    /// A timeout is too long.
    Timeout {
        /// What was asked for, in ticks.
        asked: u32,
    },
    /// The system has not so much memory, or address space.
    Memory {
        /// How many bytes the table could come to.
        bytes: usize,
        /// What the system says.
        reason: String,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Flows { asked } => {
                write!(f, "a flow table has 1 to {} flows, not {asked}", Settings::MOST_FLOWS)
            }
            TableError::Bytes { asked, least } => {
                write!(f, "a flow table of {asked} bytes has no room for a flow: it takes {least} at least")
            }
            TableError::Timeout { asked } => {
                write!(f, "a timeout has at most {} ticks, not {asked}", Settings::LONGEST_TIMEOUT)
            }
            TableError::Memory { bytes, reason } => {
                write!(f, "a flow table of {bytes} bytes does not fit: {reason}")
            }
        }
    }
}

impl std::error::Error for TableError {}

/// Why a flow was not put in. The table is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// There is a flow with this key: this one.
    Exists(Handle),
    /// There are as many flows as there may be.
    Flows {
        /// How many that is.
        most: u32,
    },
    /// Another flow would take the table beyond its bytes.
    Bytes {
        /// How many it may have.
        most: usize,
        /// How many flows that are.
        flows: u32,
    },
    /// Both buckets are full, and so are the other buckets of all flows in them: with a random seed that does not happen.
    Crowded,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertError::Exists(handle) => write!(f, "there is a flow with this key: {handle:?}"),
            InsertError::Flows { most } => write!(f, "the flow table is full: {most} flows"),
            InsertError::Bytes { most, flows } => {
                write!(f, "the flow table is full: {flows} flows take its {most} bytes")
            }
            InsertError::Crowded => f.write_str("the flow's buckets are full"),
        }
    }
}

impl std::error::Error for InsertError {}

/// What a table takes and has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Flows there are.
    pub flows: u32,
    /// Flows there may be, of both limits the lower.
    pub most_flows: u32,
    /// Bytes in use, by index, flows and all else. It grows with the most flows there ever were, and does not shrink; the system
    /// gives memory in pages, of which the last of index and flows may not be used up.
    pub bytes: usize,
    /// Bytes of `most_flows` flows.
    pub most_bytes: usize,
    /// Insertions that were refused because the table is full.
    pub full: u64,
    /// Insertions that were refused because buckets are full.
    pub crowded: u64,
}

/// Sizes of a table's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Whatever there is once.
    pub(crate) fixed: usize,
    /// A flow's entry.
    pub(crate) entry: usize,
    /// A bucket.
    pub(crate) bucket: usize,
    /// Flows for each bucket.
    pub(crate) fill: usize,
}

impl Sizes {
    /// What a table has grown to that has, or had, so many flows.
    pub(crate) fn bytes(self, flows: usize) -> usize {
        let parts = flows
            .checked_mul(self.entry)
            .and_then(|entries| entries.checked_add(buckets_for(flows, self.fill).checked_mul(self.bucket)?));
        parts.and_then(|bytes| bytes.checked_add(self.fixed)).unwrap_or(usize::MAX)
    }

    /// How many flows fit.
    pub(crate) fn flows(self, settings: &Settings) -> Result<u32, TableError> {
        let Settings { flows, bytes, .. } = *settings;
        if flows == 0 || flows > Settings::MOST_FLOWS {
            return Err(TableError::Flows { asked: flows });
        }
        let least = self.bytes(1);
        if bytes < least {
            return Err(TableError::Bytes { asked: bytes, least });
        }
        let (mut low, mut high) = (1, flows);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.bytes(middle as usize) <= bytes { low = middle } else { high = middle - 1 }
        }
        Ok(low)
    }
}
