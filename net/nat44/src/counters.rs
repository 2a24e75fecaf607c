//! What is counted of packets, by interface.

use std::io;

use shoal_graph::counter::{Counters, Simple};
use shoal_interface::{MAX_INTERFACES, SwIfIndex};
use shoal_nat::Kind;

/// Packets of one direction and one path, by interface.
pub struct PathCounters {
    tcp: Simple,
    udp: Simple,
    icmp: Simple,
    other: Simple,
    drops: Simple,
}

impl PathCounters {
    /// Counters at `path`, such as `/nat44-ed/in2out/fastpath`.
    ///
    /// # Errors
    /// There is no room for counters.
    pub fn new(counters: &Counters, path: &str) -> io::Result<Self> {
        let one = |what: &str| counters.simple(&format!("{path}/{what}"), MAX_INTERFACES);
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

    /// Makes room for so many interfaces.
    pub fn ensure(&self, interfaces: usize) {
        for counter in [&self.tcp, &self.udp, &self.icmp, &self.other, &self.drops] {
            counter.ensure(interfaces);
        }
    }
}

/// Says that a thread has so many of what a counter counts.
pub fn set_gauge(gauge: &Simple, thread: usize, value: usize) {
    if let Some(cell) = gauge.row(thread).and_then(|row| row.get(0)) {
        cell.store(value as u64, std::sync::atomic::Ordering::Relaxed);
    }
}
