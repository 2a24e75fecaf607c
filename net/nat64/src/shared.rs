//! What nodes and control plane share.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_adj::AdjTable;
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::counter::{Counters, Simple};
use shoal_graph::process::Sender;
use shoal_infra::{Guard, Published};
use shoal_interface::{IfTable, MAX_INTERFACES, SwIfIndex};
use shoal_nat::Kind;
use shoal_reassembly::L4;
use shoal_syslog::{Gate, Severity};

use crate::config::Config;
use crate::sessions::{Record, Sessions};

/// A session began (`true`) or ended.
pub type SessionEvent = (bool, Record);

/// Packets of one direction, by interface.
pub struct WayCounters {
    tcp: Simple,
    udp: Simple,
    icmp: Simple,
    other: Simple,
    drops: Simple,
}

impl WayCounters {
    fn new(counters: &Counters, way: &str) -> io::Result<Self> {
        let one = |what: &str| counters.simple(&format!("/nat64/{way}/{what}"), MAX_INTERFACES);
        Ok(WayCounters {
            tcp: one("tcp")?,
            udp: one("udp")?,
            icmp: one("icmp")?,
            other: one("other")?,
            drops: one("drops")?,
        })
    }

    /// A packet was translated.
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

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// From hosts.
    pub in2out: WayCounters,
    /// To hosts.
    pub out2in: WayCounters,
    /// Interfaces.
    pub interfaces: IfTable,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
    /// Bindings of each thread, at place 0.
    bindings: Simple,
    /// Sessions of each thread.
    sessions: Simple,
    fib: FibTables,
    adjacencies: AdjTable,
    gate: Gate,
    tell: Sender<SessionEvent>,
}

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        (interfaces, words): (IfTable, SlotKey<L4>),
        (fib, adjacencies): (FibTables, AdjTable),
        (gate, tell): (Gate, Sender<SessionEvent>),
    ) -> io::Result<Arc<Self>> {
        let total = |what: &str| {
            let counter = counters.simple(&format!("/nat64/total-{what}"), 1)?;
            counter.ensure(1);
            Ok::<_, io::Error>(counter)
        };
        Ok(Arc::new(Shared {
            config: Published::new(Config::default()),
            in2out: WayCounters::new(counters, "in2out")?,
            out2in: WayCounters::new(counters, "out2in")?,
            interfaces,
            words,
            bindings: total("bibs")?,
            sessions: total("sessions")?,
            fib,
            adjacencies,
            gate,
            tell,
        }))
    }

    /// Makes room for so many interfaces.
    pub fn ensure(&self, interfaces: usize) {
        self.in2out.ensure(interfaces);
        self.out2in.ensure(interfaces);
    }

    /// Bytes of the longest packet that gets to a host in one piece.
    pub fn mtu_to_host(&self, (table, host): (u32, Ipv6Addr), guard: Guard<'_>) -> u16 {
        self.fib.way_mtu_ip6((FibIndex(table), host.to_bits()), &self.adjacencies, guard)
    }

    /// The same of one into the IPv4 Internet.
    pub fn mtu_to_internet(&self, far: Ipv4Addr, guard: Guard<'_>) -> u16 {
        self.fib.way_mtu((FibIndex::DEFAULT, far.to_bits()), &self.adjacencies, guard)
    }

    /// A thread's numbers have changed.
    pub fn count(&self, thread: usize, sessions: &Sessions) {
        self.set_counts(thread, sessions.bindings(), sessions.len());
    }

    /// A thread has so many bindings and sessions.
    pub fn set_counts(&self, thread: usize, bindings: usize, sessions: usize) {
        for (counter, value) in [(&self.bindings, bindings), (&self.sessions, sessions)] {
            if let Some(cell) = counter.row(thread).and_then(|row| row.get(0)) {
                cell.store(value as u64, Ordering::Relaxed);
            }
        }
    }

    /// Has the main thread log a session, if sessions are logged. A main thread that is behind misses some.
    pub fn tell(&self, begins: bool, record: Record) {
        if self.gate.passes(Severity::Informational) {
            let _ = self.tell.try_send((begins, record));
        }
    }
}
