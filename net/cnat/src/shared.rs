//! What nodes and control plane share.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::Packet;
use shoal_buffer::slot::SlotKey;
use shoal_fib::{FibIndex, FibTables};
use shoal_graph::MAX_THREADS;
use shoal_graph::counter::{Combined, Counters, Number};
use shoal_infra::{Guard, Published};
use shoal_interface::IfTable;
use shoal_nat::icmp::Fault;
use shoal_nat::{Flow, LaterFragment};
use shoal_reassembly::L4;

use crate::config::Config;

/// Translations there may be.
pub const MOST_TRANSLATIONS: usize = 1 << 16;

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Interfaces.
    pub interfaces: IfTable,
    fib: FibTables,
    adjacencies: AdjTable,
    words: SlotKey<L4>,
    /// Packets that go to back ends, by translation.
    pub translated: Combined,
    /// Sessions of all threads together; the main thread keeps it.
    total: Number,
    by_thread: Vec<AtomicU64>,
}

impl Shared {
    /// As the control plane makes it.
    ///
    /// # Errors
    /// There is no room for counters.
    pub fn new(
        counters: &Counters,
        interfaces: IfTable,
        (fib, adjacencies): (FibTables, AdjTable),
        words: SlotKey<L4>,
    ) -> io::Result<Self> {
        let mut by_thread = Vec::new();
        by_thread.resize_with(MAX_THREADS, AtomicU64::default);
        Ok(Shared {
            config: Published::new(Config::default()),
            interfaces,
            fib,
            adjacencies,
            words,
            translated: counters.combined("/net/cnat-translation", MOST_TRANSLATIONS)?,
            total: counters.gauge("/cnat/sessions/total")?,
            by_thread,
        })
    }

    /// The flow of a packet whose IP header is behind `front` bytes; of a fragment that is not the first by what shallow reassembly
    /// knows of it.
    #[inline(always)]
    pub fn flow(&self, is_ip6: bool, pkt: &Packet<'_>, front: usize) -> Result<Flow, Fault> {
        let words = self.words.get(pkt);
        let later = (words.is_non_first_fragment != 0).then_some(LaterFragment {
            protocol: words.protocol,
            what: words.icmp_type_or_tcp_flags,
            sport: words.src_port,
            dport: words.dst_port,
        });
        Flow::read(is_ip6, pkt.data().get(front..).ok_or(Fault::Short)?, later)
    }

    /// Where packets to an address go.
    #[inline]
    pub fn way_to(&self, is_ip6: bool, table: u32, address: u128, guard: Guard<'_>) -> AdjIndex {
        if is_ip6 {
            self.fib.lookup_ip6(FibIndex(table), address, guard)
        } else {
            self.fib.lookup(FibIndex(table), address as u32, guard)
        }
    }

    /// Whether they go anywhere: out of an interface, or to this router or its host.
    pub fn leads_on(&self, is_ip6: bool, table: u32, address: u128, guard: Guard<'_>) -> bool {
        let adj = self.adjacencies.of_leaf(self.way_to(is_ip6, table, address, guard), guard);
        if matches!(adj.kind(), AdjKind::Local | AdjKind::Punt | AdjKind::Node) {
            return true;
        }
        let (fib, by) = (FibIndex(table), None);
        if is_ip6 {
            self.fib.reaches_ip6((fib, address), by, &self.adjacencies, guard)
        } else {
            self.fib.reaches((fib, address as u32), by, &self.adjacencies, guard)
        }
    }

    /// A thread has so many sessions.
    pub fn set_sessions(&self, thread: usize, sessions: usize) {
        if let Some(count) = self.by_thread.get(thread) {
            count.store(sessions as u64, Ordering::Relaxed);
        }
    }

    /// How many sessions there are; publishes it.
    pub fn sessions(&self) -> u64 {
        let total = self.by_thread.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        if self.total.get() != total {
            self.total.set(total);
        }
        total
    }
}
