//! What nodes and control plane share.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_adj::AdjTable;
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::clock::Time;
use shoal_graph::counter::{Counters, Simple};
use shoal_graph::process::Sender;
use shoal_infra::{Guard, Published};
use shoal_interface::{IfTable, MAX_INTERFACES, SwIfIndex};
use shoal_nat::Kind;
use shoal_nat44::counters::set_gauge;
use shoal_nat44::export::ExportGate;
use shoal_nat44::session_events::{Exhausted, ExhaustedLimit};
use shoal_reassembly::L4;
use shoal_syslog::{Gate, Severity};

use crate::config::{Config, Inside, Outside};
use crate::sessions::{Record, Refusal, Sessions};

/// What a thread tells the main thread.
#[derive(Clone, Copy, Debug)]
pub enum ThreadEvent {
    /// A session began (`true`) or ended.
    Session(bool, Record),
    /// So did a binding.
    Binding(bool, Inside, Outside),
    /// A packet could not be translated.
    Exhausted(Exhausted),
}

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
    /// Bindings of each thread, at place 0. Those of an operator count as the main thread's.
    bindings: Simple,
    /// The main thread's own, and those of an operator.
    of_main: [AtomicU64; 2],
    /// Sessions of each thread.
    sessions: Simple,
    fib: FibTables,
    adjacencies: AdjTable,
    syslog: Gate,
    export: ExportGate,
    limit: ExhaustedLimit,
    tell: Sender<ThreadEvent>,
}

impl Shared {
    pub(crate) fn new(
        counters: &Counters,
        (interfaces, words): (IfTable, SlotKey<L4>),
        (fib, adjacencies): (FibTables, AdjTable),
        (syslog, export): (Gate, ExportGate),
        tell: Sender<ThreadEvent>,
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
            of_main: [AtomicU64::new(0), AtomicU64::new(0)],
            syslog,
            export,
            limit: ExhaustedLimit::default(),
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
        set_gauge(&self.sessions, thread, sessions);
        let [own, statics] = &self.of_main;
        if thread > 0 {
            return set_gauge(&self.bindings, thread, bindings);
        }
        own.store(bindings as u64, Ordering::Relaxed);
        set_gauge(&self.bindings, 0, bindings + statics.load(Ordering::Relaxed) as usize);
    }

    /// An operator has made so many bindings.
    pub fn set_statics(&self, count: usize) {
        let [own, statics] = &self.of_main;
        statics.store(count as u64, Ordering::Relaxed);
        set_gauge(&self.bindings, 0, count + own.load(Ordering::Relaxed) as usize);
    }

    /// Has the main thread log a session, if sessions are logged. A main thread that is behind misses some.
    pub fn tell(&self, begins: bool, record: Record) {
        if self.export.is_open() || self.syslog.passes(Severity::Informational) {
            let _ = self.tell.try_send(ThreadEvent::Session(begins, record));
        }
    }

    /// The same of bindings.
    pub fn tell_bindings(&self, sessions: &mut Sessions) {
        let is_open = self.export.is_open();
        for (begins, inside, outside) in sessions.events.drain(..).filter(|_| is_open) {
            let _ = self.tell.try_send(ThreadEvent::Binding(begins, inside, outside));
        }
    }

    /// Has the main thread log that there was not enough of something: once a second.
    pub fn tell_refusal(&self, why: Refusal, config: &Config, now: Time) {
        let what = match why {
            Refusal::OutOfPorts => Exhausted::Ports,
            Refusal::Full => Exhausted::Sessions { most: config.limits.sessions },
            Refusal::FullOfBindings => Exhausted::Bindings { most: config.limits.bindings },
            Refusal::Standby => return,
        };
        if self.export.is_open() && self.limit.passes(what, now) {
            let _ = self.tell.try_send(ThreadEvent::Exhausted(what));
        }
    }
}
