//! What can be wrong with a table operation.

use std::net::IpAddr;

use shoal_adj::AdjError;
use shoal_infra::budget::NoMemory;
use shoal_infra::mtrie::UpdateError;
use shoal_infra::qsbr::Backlog;
use shoal_wire::IpPrefix;

use crate::{FibIndex, Source};

/// Why a table operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FibError {
    /// No table of this id; the nearest there is.
    #[error("no table {id}, nearest {nearest}")]
    NoTable {
        /// The id asked for.
        id: u32,
        /// The id nearest to it.
        nearest: u32,
    },
    /// There are as many tables as there can be.
    #[error("{0} tables are all there can be")]
    TooManyTables(usize),
    /// No table of this index.
    #[error("no table with fib_index {0}")]
    NoIndex(FibIndex),
    /// There is a table of this id already.
    #[error("table {0} exists already")]
    TableExists(u32),
    /// Another table has this name.
    #[error("table {1} is called `{0}' already")]
    NameTaken(String, u32),
    /// Table 0 cannot go.
    #[error("table 0 cannot be deleted")]
    DefaultTable,
    /// The table is needed by others.
    #[error("table {id} is in use: {by}")]
    TableInUse {
        /// The table's id.
        id: u32,
        /// The module that uses it.
        by: String,
    },
    /// Another source of routes has this name.
    #[error("`{0}' is the name of another source of routes")]
    SourceTaken(String),
    /// A client's source cannot stand there.
    #[error("a client's source of routes has a priority from 6 to 175, not {0}")]
    SourcePriority(u8),
    /// There is no place for a source of this priority.
    #[error("no place for another source of routes of this priority beside {0}")]
    TooManySources(usize),
    /// The prefix is not in the table.
    #[error("{prefix} is not in table {table}{nearest}", nearest = near(*.nearest))]
    NoEntry {
        /// The prefix asked for.
        prefix: IpPrefix,
        /// The table's id.
        table: u32,
        /// The longest prefix that covers it, of those that could have been meant.
        nearest: Option<IpPrefix>,
    },
    /// The prefix is in the table, but others contribute it.
    #[error("{prefix} in table {table} is from {from}, not from {by}")]
    OtherSource {
        /// The prefix.
        prefix: IpPrefix,
        /// The table's id.
        table: u32,
        /// The source that should withdraw it.
        by: Source,
        /// Who contributes it.
        from: Source,
    },
    /// The entry has other paths of this source.
    #[error("{prefix} in table {table} has no such path from {by}, it has {count}")]
    NoPath {
        /// The prefix.
        prefix: IpPrefix,
        /// The table's id.
        table: u32,
        /// Whose paths.
        by: Source,
        /// How many paths of the source there are.
        count: usize,
    },
    /// No paths were given.
    #[error("a route needs at least one path")]
    NoPaths,
    /// No neighbour can have this address.
    #[error("{0} is no next hop: it must be the address of one host")]
    NextHop(IpAddr),
    /// A link-local next hop without its link (RFC 4291 2.5.6).
    #[error("{0} is the address of a host on one link: the interface is missing")]
    LinkLocal(IpAddr),
    /// There is no broadcast in IPv6.
    #[error("IPv6 has no broadcast")]
    Broadcast,
    /// Prefixes of both families in one bulk.
    #[error("{0} is of another family than those before it")]
    Mixed(IpPrefix),
    /// More paths than a balance has buckets.
    #[error("{0} paths are too many for one route, nearest 1024")]
    TooManyPaths(usize),
    /// A weight of 0.
    #[error("weight 0 is not possible: 1 to 255, nearest 1")]
    Weight,
    /// More prefixes than there are above the first.
    #[error("{count} prefixes from {first} on end beyond {last}, nearest {most}", last = highest(first))]
    Count {
        /// The first prefix.
        first: IpPrefix,
        /// How many were asked for.
        count: u32,
        /// How many there are.
        most: u64,
    },
    /// The table is full.
    #[error("{prefix} does not fit into table {table}: {why}")]
    Full {
        /// The prefix.
        prefix: IpPrefix,
        /// The table's id.
        table: u32,
        /// Why.
        why: UpdateError,
    },
    /// There is no memory for another entry.
    #[error("{prefix} does not fit into table {table}: {why}")]
    NoMemory {
        /// The prefix.
        prefix: IpPrefix,
        /// The table's id.
        table: u32,
        /// Why.
        why: NoMemory,
    },
    /// There is no memory to note how a bulk would be undone.
    #[error("too many at once, nearest {fit}: {why}")]
    Bulk {
        /// How many would have been possible.
        fit: usize,
        /// Why not more.
        why: NoMemory,
    },
    /// There is no memory for another list of paths.
    #[error("the paths of the route: {0}")]
    Paths(NoMemory),
    /// There is no memory for another route's counter.
    #[error("the counter of the route: {0}")]
    Counter(NoMemory),
    /// One of all routes of a table that count cannot stop alone.
    #[error("all routes of table {table} are counted, so {prefix} is: disable the counters of all first")]
    AllCount {
        /// The prefix.
        prefix: IpPrefix,
        /// The table's id.
        table: u32,
    },
    /// The system gives no memory for another table.
    #[error("no memory for table {0}: {1}")]
    Memory(u32, String),
    /// The adjacency of a path cannot be made.
    #[error(transparent)]
    Adj(#[from] AdjError),
    /// A thread does not move, and too many changes wait for it.
    #[error(transparent)]
    Backlog(#[from] Backlog),
}

fn near(nearest: Option<IpPrefix>) -> String {
    nearest.map_or_else(String::new, |p| format!(", nearest {p}"))
}

fn highest(prefix: &IpPrefix) -> &'static str {
    if prefix.max_len() == 32 { "255.255.255.255" } else { "the last address" }
}
