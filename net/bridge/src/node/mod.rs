//! The nodes.

pub mod arp_term;
pub mod blocked;
pub mod chain;
pub mod flood;
pub mod forward;
pub mod learn;
pub mod storm;
pub mod to_bvi;
pub mod unknown;

use shoal_buffer::Packet;
use shoal_interface::SwIfIndex;
use shoal_wire::{EthernetHeader, MacAddress};

use crate::entry::Entry;
use crate::fib::{MacTable, Search};

/// The look-up of a frame's station, and what it has found.
#[derive(Clone, Copy, Default)]
pub struct Query {
    pub(crate) search: Search,
    /// 0: nothing.
    entry: u64,
}

impl Query {
    #[inline(always)]
    fn new(search: Search) -> Self {
        Query { search, entry: 0 }
    }

    /// Finds all. Frames that follow each other are often those of one station.
    #[inline(always)]
    fn find_all(all: &mut [Query], macs: &MacTable) {
        let mut last = Query::default();
        for query in all {
            if query.search != last.search {
                let found = macs.find(&query.search);
                last = Query { search: query.search, entry: found.map_or(0, |found| found.entry.0) };
            }
            query.entry = last.entry;
        }
    }

    #[inline(always)]
    fn entry(&self) -> Option<Entry> {
        (self.entry != 0).then_some(Entry(self.entry))
    }

    #[inline(always)]
    fn forget(&mut self) {
        self.entry = 0;
    }
}

/// What most nodes say in a trace.
pub struct Trace {
    name: &'static str,
    rx: SwIfIndex,
    dst: MacAddress,
    src: MacAddress,
    domain: u16,
}

impl Trace {
    pub(crate) fn new(name: &'static str, pkt: &Packet<'_>, domain: u16) -> Self {
        let header = pkt.header::<EthernetHeader>();
        let [dst, src] = header.map_or([MacAddress::ZERO; 2], |header| [header.dst(), header.src()]);
        Trace { name, rx: pkt.rx(), dst, src, domain }
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Trace { name, rx, dst, src, domain } = self;
        write!(f, "{name} sw_if_index {rx} dst {dst} src {src} bd_index {domain}")
    }
}
