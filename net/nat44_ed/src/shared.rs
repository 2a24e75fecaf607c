//! What nodes and control plane share.

use std::io;

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::counter::{Counters, Simple};
use shoal_infra::{Guard, Published};
use shoal_interface::{IfTable, MAX_INTERFACES, SwIfIndex};
use shoal_ip4::Ip4IfTable;
use shoal_nat::Kind;
use shoal_reassembly::L4;

use crate::config::Config;

/// Packets of one direction and one path, by interface.
pub struct PathCounters {
    tcp: Simple,
    udp: Simple,
    icmp: Simple,
    other: Simple,
    drops: Simple,
}

impl PathCounters {
    fn new(counters: &Counters, way: &str, path: &str) -> io::Result<Self> {
        let one = |what: &str| counters.simple(&format!("/nat44-ed/{way}/{path}/{what}"), MAX_INTERFACES);
        Ok(PathCounters {
            tcp: one("tcp")?,
            udp: one("udp")?,
            icmp: one("icmp")?,
            other: one("other")?,
            drops: one("drops")?,
        })
    }

    /// A packet was translated.
    #[inline(always)]
    pub fn add(&self, kind: Kind, thread: usize, interface: SwIfIndex) {
        let counter = match kind {
            Kind::Tcp => &self.tcp,
            Kind::Udp => &self.udp,
            Kind::Query | Kind::Error | Kind::OtherIcmp => &self.icmp,
            Kind::Other => &self.other,
        };
        counter.add(thread, interface.0 as usize, 1);
    }

    /// A packet was dropped.
    pub fn drop(&self, thread: usize, interface: SwIfIndex) {
        self.drops.add(thread, interface.0 as usize, 1);
    }

    fn ensure(&self, interfaces: usize) {
        for counter in [&self.tcp, &self.udp, &self.icmp, &self.other, &self.drops] {
            counter.ensure(interfaces);
        }
    }
}

/// All counters.
pub struct NatCounters {
    /// From hosts, and to them: of sessions that were known.
    pub fast: [PathCounters; 2],
    /// Of packets that needed a decision.
    pub slow: [PathCounters; 2],
    /// Packets between two hosts.
    pub hairpinning: Simple,
    /// Sessions of each thread, at place 0.
    pub sessions: Simple,
}

impl NatCounters {
    fn new(counters: &Counters) -> io::Result<Self> {
        let path = |way, path| PathCounters::new(counters, way, path);
        let all = NatCounters {
            fast: [path("in2out", "fastpath")?, path("out2in", "fastpath")?],
            slow: [path("in2out", "slowpath")?, path("out2in", "slowpath")?],
            hairpinning: counters.simple("/nat44-ed/hairpinning", MAX_INTERFACES)?,
            sessions: counters.simple("/nat44-ed/total-sessions", 1)?,
        };
        all.sessions.ensure(1);
        Ok(all)
    }

    /// Makes room for so many interfaces.
    pub fn ensure(&self, interfaces: usize) {
        self.fast.iter().chain(&self.slow).for_each(|path| path.ensure(interfaces));
        self.hairpinning.ensure(interfaces);
    }

    /// A thread has so many sessions.
    pub fn set_sessions(&self, thread: usize, sessions: usize) {
        if let Some(cell) = self.sessions.row(thread).and_then(|row| row.get(0)) {
            cell.store(sessions as u64, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Counters.
    pub counters: NatCounters,
    /// Forwarding tables.
    pub fib: FibTables,
    /// Adjacencies.
    pub adjacencies: AdjTable,
    /// Interfaces.
    pub interfaces: IfTable,
    /// Their addresses.
    pub addresses: Ip4IfTable,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
}

impl Shared {
    /// As the control plane makes it.
    ///
    /// # Errors
    /// There is no room for counters.
    pub fn new(
        counters: &Counters,
        (fib, adjacencies): (FibTables, AdjTable),
        (interfaces, addresses): (IfTable, Ip4IfTable),
        words: SlotKey<L4>,
    ) -> io::Result<Self> {
        let counters = NatCounters::new(counters)?;
        let config = Published::new(Config::default());
        Ok(Shared { config, counters, fib, adjacencies, interfaces, addresses, words })
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
    pub fn leads_outside(&self, config: &Config, table: u32, address: u32, guard: Guard<'_>) -> bool {
        if let Some(ways) = config.ways_out.get(&table) {
            return ways.iter().any(|way| self.reaches(*way, address, None, guard));
        }
        if self.is_own(table, address, guard) {
            return false;
        }
        let leaves = |table| config.outside.iter().any(|i| self.reaches(table, address, Some(*i), guard));
        if leaves(table) {
            return true;
        }
        // A way that leads elsewhere is to be taken; without any, the tables of the outside are asked.
        !self.reaches(table, address, None, guard) && config.outside_tables.iter().any(|table| leaves(*table))
    }

    /// The table in which the destination of a table's hosts is looked for.
    pub fn way_out(&self, config: &Config, table: u32, address: u32, guard: Guard<'_>) -> u32 {
        let reached = |way: &&u32| self.reaches(**way, address, None, guard);
        if let Some(ways) = config.ways_out.get(&table) {
            return ways.iter().find(reached).copied().unwrap_or(config.outside_table);
        }
        let mut tables = config.outside_tables.iter();
        match (tables.next(), config.outside_tables.len()) {
            (Some(only), 1) => *only,
            _ => config.outside_tables.iter().find(reached).copied().unwrap_or(config.outside_table),
        }
    }
}
