//! Whether an answer to a packet for this router would find its sender: its source is looked up as VPP's `ip4-local` and
//! `ip6-local` do.

use std::net::IpAddr;

use shoal_adj::{AdjKind, AdjTable};
use shoal_buffer::{Flags, Packet};
use shoal_fib::{FibIndex, FibTables};
use shoal_infra::Guard;
use shoal_interface::IfTable;

/// What a table says of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// An interface leads to it.
    Reached,
    /// It is this router's own address, and the packet came from elsewhere.
    Own,
    /// No interface leads to it.
    Missing,
}

/// Looks up sources.
#[derive(Clone)]
pub struct Sources {
    /// All forwarding tables.
    pub fib: FibTables,
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// All interfaces.
    pub interfaces: IfTable,
}

impl Sources {
    /// Looks up where a packet comes from, in the table it was looked up in.
    pub fn judge(&self, src: IpAddr, pkt: &Packet<'_>, guard: Guard<'_>) -> Source {
        if pkt.flags().has(Flags::LOCALLY_ORIGINATED) {
            return Source::Reached;
        }
        let fib = match src {
            IpAddr::V4(_) => table(pkt, self.interfaces.ip4_table(pkt.rx())),
            IpAddr::V6(_) => table(pkt, self.interfaces.ip6_table(pkt.rx())),
        };
        let reached = match src {
            IpAddr::V4(src) => self.fib.reaches((fib, src.to_bits()), None, &self.adjacencies, guard),
            IpAddr::V6(src) => self.fib.reaches_ip6((fib, src.to_bits()), None, &self.adjacencies, guard),
        };
        if reached {
            return Source::Reached;
        }
        // What leads to this router leads to no interface, so only the packets that are dropped are looked up twice.
        let leaf = match src {
            IpAddr::V4(src) => self.fib.lookup(fib, src.to_bits(), guard),
            IpAddr::V6(src) => self.fib.lookup_ip6(fib, src.to_bits(), guard),
        };
        match self.adjacencies.of_leaf(leaf, guard).kind() {
            AdjKind::Local => Source::Own,
            _ => Source::Missing,
        }
    }
}

fn table(pkt: &Packet<'_>, of_interface: u32) -> FibIndex {
    pkt.meta().fib().unwrap_or(FibIndex(of_interface))
}
