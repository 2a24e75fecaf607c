//! `l2-fwd`: a frame goes where its destination was heard.
//! l2-input -> **l2-fwd** -> l2-output | l2-to-bvi | the next feature, which floods
//!
//! A staged node, as `l2-learn`.

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{Counts, Cx, Edge, StagedNode};
use shoal_infra::Guard;
use shoal_interface::{IfTable, SwIfIndex};
use shoal_l2::{Input, InputNext as Next, Path, Place};
use shoal_wire::{EthernetHeader, MacAddress};

use super::{Query, to_bvi};
use crate::entry::{Entry, FlagNames, Key};
use crate::table::DomainTable;

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 forward packets
    #[counter("l2fwd")]
    Packets,
    /// L2 forward misses
    #[counter("flood")]
    Miss,
    /// L2 forward hits
    #[counter("hit")]
    Hit,
    /// BVI L3 MAC mismatch
    #[counter("bvi_bad_mac")]
    BviMac,
    /// BVI packet with unhandled ethertype
    #[counter("bvi_ethertype")]
    BviType,
    /// Filter Mac Drop
    #[counter("filter_drop")]
    Filter,
    /// Reflection Drop
    #[counter("reflection_drop")]
    Reflection,
    /// Stale entry Drop
    #[counter("stale_drop")]
    Stale,
}

/// What `show trace` says.
pub struct Trace {
    rx: SwIfIndex,
    dst: MacAddress,
    src: MacAddress,
    domain: u16,
    /// All bits set: none was found.
    entry: u64,
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Trace { rx, dst, src, domain, entry } = self;
        write!(f, "l2-fwd:   sw_if_index {rx} dst {dst} src {src} bd_index {domain} result [0x{entry:x}, ")?;
        let entry = Entry(*entry);
        write!(f, "{}] {}", entry.interface().0 as i32, FlagNames(entry.flags()))
    }
}

/// Forwards.
pub struct Forward {
    /// The way through the features.
    pub path: Path,
    /// All domains and stations.
    pub table: DomainTable,
    /// All interfaces.
    pub interfaces: IfTable,
    /// The edge to `l2-to-bvi`.
    pub to_bvi: Edge,
}

impl Counts for Forward {
    type Error = Error;
}

impl StagedNode for Forward {
    const NAME: &'static str = "l2-fwd";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;
    type Key = Query;

    #[inline(always)]
    fn prepare(&self, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Query {
        let Some(header) = pkt.header::<EthernetHeader>() else { return Query::default() };
        let domain = self.path.data(pkt.rx(), cx.guard()).domain();
        Query::new(self.table.macs().search(Key::new(header.dst(), domain)))
    }

    #[inline(always)]
    fn seek(&self, all: &mut [Query], cx: &mut Cx<'_, Self>) {
        let (mut hits, mut stale) = (0, 0);
        Query::find_all(all, self.table.macs());
        for query in &mut *all {
            match query.entry() {
                Some(entry) if self.is_stale(entry, query.search.key.domain(), cx.guard()) => {
                    query.forget();
                    stale += 1;
                }
                Some(entry) => hits += u64::from(!entry.has(Entry::FILTER | Entry::BVI)),
                None => {}
            }
        }
        cx.count(Error::Packets, all.len() as u64);
        cx.count(Error::Hit, hits);
        cx.count(Error::Stale, stale);
    }

    #[inline(always)]
    fn packet(&self, query: Query, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || {
            let header = pkt.header::<EthernetHeader>();
            let [dst, src] = header.map_or([MacAddress::ZERO; 2], |header| [header.dst(), header.src()]);
            // One that is stale is shown, too.
            let found = self.table.macs().find(&query.search);
            let domain = query.search.key.domain();
            Trace { rx: pkt.rx(), dst, src, domain, entry: found.map_or(u64::MAX, |found| found.entry.0) }
        });
        let Some(entry) = query.entry() else { return self.unknown(pkt, cx) };
        let (rx, tx) = (pkt.rx(), entry.interface());
        if entry.has(Entry::FILTER | Entry::BVI) {
            return self.special(entry, pkt.reborrow(), &cx.aside());
        }
        if tx == rx {
            return Err(Error::Reflection);
        }
        pkt.meta_mut().tx = tx;
        Ok(Next::Output)
    }
}

impl Forward {
    /// Whether a station was learned where its interface is no member any more, or before a flush.
    #[inline(always)]
    pub(super) fn is_stale(&self, entry: Entry, domain: u16, guard: Guard<'_>) -> bool {
        if !entry.is_learned() {
            return false;
        }
        let out = self.path.data(entry.interface(), guard);
        !out.is_bridged() || out.domain() != domain || out.sequence() != entry.sequence()
    }

    /// The station is unknown: what comes behind this node floods.
    #[inline(always)]
    fn unknown(&self, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Result<Next, Error> {
        let features = self.path.data(pkt.rx(), cx.guard()).input();
        if !features.has(Input::UnknownFlood) && !features.has(Input::UnknownForward) {
            return Err(Error::Miss);
        }
        cx.count(Error::Miss, 1);
        if features.has(Place::STORM_UNKNOWN) {
            return Ok(self.path.to(Place::STORM_UNKNOWN).map_or(Next::BitmapDrop, Next::To));
        }
        Ok(self.path.behind(pkt, Input::Forward, cx.guard()).map_or(Next::BitmapDrop, Next::To))
    }

    /// What is not only sent out.
    #[cold]
    fn special(&self, entry: Entry, mut pkt: Packet<'_>, cx: &Cx<'_, Self>) -> Result<Next, Error> {
        if entry.has(Entry::FILTER) {
            return Err(Error::Filter);
        }
        let bvi = entry.interface();
        if pkt.rx() == bvi {
            return Err(Error::Reflection);
        }
        let (guard, data) = (cx.guard(), self.interfaces.get(bvi, cx.guard()));
        let dst = pkt.header::<EthernetHeader>().map(EthernetHeader::dst);
        if dst.is_none_or(|dst| dst != data.mac() && !self.interfaces.takes(data, dst, guard)) {
            return Err(Error::BviMac);
        }
        cx.count(Error::Hit, 1);
        to_bvi::turn(&mut pkt, bvi);
        Ok(Next::To(self.to_bvi))
    }
}
