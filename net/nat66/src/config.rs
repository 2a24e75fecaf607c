//! What packets read of the configuration.

use shoal_adj::{AdjKind, AdjTable};
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::counter::{Combined, Simple};
use shoal_infra::{Guard, Published};
use shoal_interface::{IfTable, SwIfIndex};
use shoal_nat::Shards;

/// A mapping as packets see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The host's address.
    pub local: u128,
    /// The address it has outside.
    pub external: u128,
    /// The host's table.
    pub table: FibIndex,
    /// Where its packets are counted.
    pub counter: u32,
}

/// One version of the configuration.
#[derive(Clone, Default)]
pub struct Config {
    /// Whether NAT66 is on.
    pub on: bool,
    /// Interfaces to the outside.
    pub outside: Vec<SwIfIndex>,
    /// The table in which the outside is looked for if a host's own table does not know a way.
    pub outside_table: u32,
    /// Mappings by the host's address and table.
    pub local: Shards<(u128, FibIndex), Pair>,
    /// Mappings by the outside address.
    pub external: Shards<u128, Pair>,
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Translated packets of hosts, by interface.
    pub in2out: Simple,
    /// Translated packets to hosts, by interface.
    pub out2in: Simple,
    /// Packets and bytes of each mapping.
    pub mappings: Combined,
    /// Forwarding tables.
    pub fib: FibTables,
    /// Adjacencies.
    pub adjacencies: AdjTable,
    /// Interfaces.
    pub interfaces: IfTable,
}

impl Shared {
    /// The table in which the way of a packet from a table's host to the outside is; `None` if it does not lead there.
    pub fn way_out(&self, config: &Config, table: u32, dst: u128, guard: Guard<'_>) -> Option<u32> {
        let own = self.fib.lookup_ip6(FibIndex(table), dst, guard);
        if self.adjacencies.get(own, guard).kind() == AdjKind::Local {
            return None;
        }
        let reaches = |table, by| self.fib.reaches_ip6((FibIndex(table), dst), by, &self.adjacencies, guard);
        let leaves = |table| config.outside.iter().any(|interface| reaches(table, Some(*interface)));
        if leaves(table) {
            return Some(table);
        }
        // A way that leads elsewhere is to be taken; without any, the table of the outside is asked.
        (!reaches(table, None) && leaves(config.outside_table)).then_some(config.outside_table)
    }
}
