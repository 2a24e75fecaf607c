//! Whether a packet is the router's own, and whether it leaves to the outside.

use std::collections::{BTreeMap, BTreeSet};

use shoal_adj::{AdjKind, AdjTable};
use shoal_fib::{FibIndex, FibTables};
use shoal_infra::Guard;
use shoal_interface::SwIfIndex;

/// Forwarding tables, and where they lead.
pub struct Reach {
    fib: FibTables,
    adjacencies: AdjTable,
}

/// Where the outside is.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// Interfaces to it.
    pub interfaces: Vec<SwIfIndex>,
    /// Their tables.
    pub tables: BTreeSet<u32>,
    /// The table, by default.
    pub table: u32,
    /// Tables in which destinations of a table's hosts are looked for, in this order.
    pub ways: BTreeMap<u32, Vec<u32>>,
}

impl Reach {
    /// By these tables.
    pub fn new(fib: FibTables, adjacencies: AdjTable) -> Self {
        Reach { fib, adjacencies }
    }

    /// Whether an address is this router's in a table.
    pub fn is_own(&self, table: u32, address: u32, guard: Guard<'_>) -> bool {
        let found = self.fib.lookup(FibIndex(table), address, guard);
        self.adjacencies.get(found, guard).kind() == AdjKind::Local
    }

    /// Whether packets to an address leave, by an interface or any.
    pub fn reaches(&self, table: u32, address: u32, by: Option<SwIfIndex>, guard: Guard<'_>) -> bool {
        self.fib.reaches((FibIndex(table), address), by, &self.adjacencies, guard)
    }

    /// Whether packets from a table's hosts to an address leave by an interface to the outside.
    pub fn leads_outside(&self, outside: &Outside, table: u32, address: u32, guard: Guard<'_>) -> bool {
        if let Some(ways) = outside.ways.get(&table) {
            return ways.iter().any(|way| self.reaches(*way, address, None, guard));
        }
        if self.is_own(table, address, guard) {
            return false;
        }
        let leaves = |table| outside.interfaces.iter().any(|i| self.reaches(table, address, Some(*i), guard));
        if leaves(table) {
            return true;
        }
        // A way that leads elsewhere is to be taken; without any, the tables of the outside are asked.
        !self.reaches(table, address, None, guard) && outside.tables.iter().any(|table| leaves(*table))
    }

    /// The table in which the destination of a table's hosts is looked for.
    pub fn way_out(&self, outside: &Outside, table: u32, address: u32, guard: Guard<'_>) -> u32 {
        let reached = |way: &&u32| self.reaches(**way, address, None, guard);
        if let Some(ways) = outside.ways.get(&table) {
            return ways.iter().find(reached).copied().unwrap_or(outside.table);
        }
        let mut tables = outside.tables.iter();
        match (tables.next(), outside.tables.len()) {
            (Some(only), 1) => *only,
            _ => outside.tables.iter().find(reached).copied().unwrap_or(outside.table),
        }
    }
}
