//! `ip4-mfib-forward-rpf`, `ip6-mfib-forward-rpf`: did the packet come by an interface its entry accepts?
//! the lookup -> **rpf** -> the replication
//!
//! What comes by another way is a duplicate or goes in a circle.

use std::fmt;
use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::counter::Combined;
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};

use super::mark::Mark;
use crate::MfibTable;
use crate::control::counted_at;
use crate::family::Ip;
use crate::flags::{EntryFlags, ItfFlags};

/// Where a packet goes next: an edge.
#[derive(Clone, Copy)]
pub(crate) struct Next<F>(u16, PhantomData<F>);

impl<F: Ip> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::RPF_NEXT;

    fn edge(self) -> Edge {
        Edge(self.0)
    }
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// multicast RPF check failed
    #[counter("rpf_failure")]
    RpfFailure,
    /// multicast route drops
    Drop,
    /// multicast route without a forwarding interface
    #[severity(info)]
    NoListener,
    /// interfaces with a packet to signal
    #[severity(info)]
    Signalled,
}

/// What `show trace` says.
pub(crate) struct Trace {
    entry: u32,
    flags: ItfFlags,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} itf-flags: {}", self.entry, self.flags)
    }
}

/// Checks where packets come from.
pub(crate) struct MfibRpf<F> {
    pub table: MfibTable,
    pub counter: Combined,
    pub family: PhantomData<F>,
}

impl<F: Ip> PacketNode for MfibRpf<F> {
    const NAME: &'static str = F::RPF;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        let mark = *pkt.scratch::<Mark>();
        let entry = self.table.entry(mark.entry, cx.guard());
        let itf = entry.itf(pkt.rx());
        cx.trace(pkt, || Trace { entry: mark.entry, flags: itf.map_or(ItfFlags::default(), |i| i.flags) });
        if itf.is_some_and(|itf| entry.signal(itf)) {
            cx.count(Error::Signalled, 1);
        }
        if entry.flags.has(EntryFlags::DROP) {
            return Err(Error::Drop);
        }
        if !entry.accepts(itf) {
            return Err(Error::RpfFailure);
        }
        self.counter.add(cx.thread(), counted_at(F::FAMILY, mark.entry), 1, pkt.len() as u64);
        if !entry.local && (entry.out.is_empty() || mark.on_link != 0) {
            return Err(Error::NoListener);
        }
        Ok(Next(1, PhantomData))
    }
}
