//! `l2-learn` and `l2-fwd` as parts of a chain: frames between stations that are known and have not moved.
//!
//! Both look-ups of a frame are done ahead together: where its source is, and where its destination. What the second has
//! found waits in the packet from one node to the next.

use shoal_buffer::Packet;
use shoal_graph::Cx;
use shoal_graph::superpath::{FlowLookupNode, Known, Pass, StagedLookup};
use shoal_infra::Guard;
use shoal_interface::SwIfIndex;
use shoal_l2::L2Data;
use shoal_wire::EthernetHeader;

use super::forward::{self, Forward};
use super::learn::{self, Learn};
use crate::entry::{Entry, Key, SettledEntry};
use crate::fib::{MacTable, Search};

/// What a frame looks for, source and destination, and what was found: 0 for nothing. Between the two, where to look.
#[derive(Clone, Copy, Default)]
pub struct FrameStations {
    src: Key,
    dst: Key,
    found: [u64; 2],
}

impl PartialEq for FrameStations {
    fn eq(&self, other: &Self) -> bool {
        (self.src, self.dst) == (other.src, other.dst)
    }
}

/// What `l2-learn` needs to know of an interface.
#[derive(Clone, Copy)]
pub struct Facts<'g> {
    learn: &'g Learn,
    data: &'g L2Data,
    /// What is known of a station that was learned here and that nothing has become untrue of since.
    settled: SettledEntry,
}

impl FrameStations {
    /// The stations of a frame, in no domain yet.
    #[inline(always)]
    fn of(pkt: &Packet<'_>, offset: usize) -> FrameStations {
        let Some(header) = pkt.header_at::<EthernetHeader>(offset) else { return FrameStations::default() };
        let (dst, src) = header.stations();
        FrameStations { src: Key::of_number(src), dst: Key::of_number(dst), found: [0; 2] }
    }

    /// The same stations, of a domain.
    #[inline(always)]
    fn within(self, domain: u16) -> FrameStations {
        FrameStations { src: self.src.within(domain), dst: self.dst.within(domain), ..self }
    }

    /// What is known of both.
    #[inline(always)]
    fn find(&self, macs: &MacTable) -> [u64; 2] {
        [self.src, self.dst].map(|station| found(macs, &macs.place_of(station)))
    }
}

/// What is known of a station; 0 for nothing.
#[inline(always)]
fn found(macs: &MacTable, station: &Search) -> u64 {
    macs.find(station).map_or(0, |found| found.entry.0)
}

impl StagedLookup for Learn {
    type Facts<'g> = Facts<'g>;
    type Query = FrameStations;
    type InFlight = ();

    fn is_far(_: Facts<'_>) -> bool {
        true
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> FrameStations {
        FrameStations::of(pkt, offset)
    }

    #[inline(always)]
    fn begin(_: Facts<'_>, _: &mut FrameStations) {}

    /// Asks memory for what is looked up later, of a source that sends several frames in a row once.
    #[inline(always)]
    fn begun(facts: Facts<'_>, all: &mut [FrameStations]) {
        let (places, domain) = (facts.learn.table.macs().places(), facts.data.domain());
        let (mut src, mut first) = (Key::default(), 0);
        for both in all {
            *both = both.within(domain);
            if both.src != src {
                (src, first) = (both.src, places.search(both.src).first());
            }
            both.found = [first, places.search(both.dst).first()].map(u64::from);
        }
    }

    #[inline(always)]
    fn advance(_: Facts<'_>, _: &mut [FrameStations]) {}

    #[inline(always)]
    fn finish(facts: Facts<'_>, (): (), all: &mut [FrameStations]) {
        let macs = facts.learn.table.macs();
        let (mut src, mut entry) = (Key::default(), 0);
        for both in all {
            let [src_first, dst_first] = both.found;
            if both.src != src {
                (src, entry) = (both.src, found(macs, &Search::of(both.src, src_first as u32)));
            }
            both.found = [entry, found(macs, &Search::of(both.dst, dst_first as u32))];
        }
    }

    #[inline(always)]
    fn look_up(facts: Facts<'_>, query: &mut FrameStations) {
        let within = query.within(facts.data.domain());
        *query = FrameStations { found: within.find(facts.learn.table.macs()), ..within };
    }
}

impl FlowLookupNode for Learn {
    #[inline(always)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Facts<'g>> {
        let data = self.path.data(interface, guard);
        Some(Facts { learn: self, data, settled: SettledEntry::new(interface, data.sequence()) })
    }

    /// A source that is where it was, and needs no write, passes.
    #[inline(always)]
    fn consult(
        &self,
        facts: Facts<'_>,
        known: Known<'_, FrameStations>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let own = || FrameStations::of(pkt, 0).within(facts.data.domain());
        let [src, dst] = match known {
            // Nodes in front of this one change no addresses.
            Known::Answer(both) => both.found,
            Known::Other(both, ()) if *both == own() && both.found != [0; 2] => both.found,
            _ => own().find(self.table.macs()),
        };
        let src = Entry(src);
        let as_ever = facts.settled.is(src) && self.is_young(src, facts.data, cx);
        if !as_ever && (src.0 == 0 || !self.is_settled(src, pkt.rx(), facts.data, cx)) {
            return Pass::Leave;
        }
        *pkt.scratch::<u64>() = dst;
        Pass::On
    }

    #[inline(always)]
    fn count_passed(&self, packets: u64, cx: &Cx<'_, Self>) {
        cx.count(learn::Error::Packets, packets);
    }
}

impl StagedLookup for Forward {
    type Facts<'g> = (&'g Forward, Guard<'g>);
    type Query = ();
    type InFlight = ();

    fn is_far(_: Self::Facts<'_>) -> bool {
        false
    }

    #[inline(always)]
    fn query(_: &Packet<'_>, _: usize) {}

    #[inline(always)]
    fn begin(_: Self::Facts<'_>, (): &mut ()) {}

    #[inline(always)]
    fn advance(_: Self::Facts<'_>, _: &mut [()]) {}

    #[inline(always)]
    fn finish(_: Self::Facts<'_>, (): (), _: &mut [()]) {}
}

impl FlowLookupNode for Forward {
    #[inline(always)]
    fn facts<'g>(&'g self, _: SwIfIndex, guard: Guard<'g>) -> Option<(&'g Forward, Guard<'g>)> {
        Some((self, guard))
    }

    /// A frame whose station is behind another port passes.
    #[inline(always)]
    fn consult(
        &self,
        (_, guard): (&Forward, Guard<'_>),
        _: Known<'_, ()>,
        pkt: &mut Packet<'_>,
        _: &Cx<'_, Self>,
    ) -> Pass {
        let entry = Entry(*pkt.scratch::<u64>());
        let (rx, tx) = (pkt.rx(), entry.interface());
        if entry.0 == 0 || entry.has(Entry::FILTER | Entry::BVI) || tx == rx {
            return Pass::Leave;
        }
        if self.is_stale(entry, self.path.data(rx, guard).domain(), guard) {
            return Pass::Leave;
        }
        pkt.meta_mut().tx = tx;
        Pass::On
    }

    #[inline(always)]
    fn count_passed(&self, packets: u64, cx: &Cx<'_, Self>) {
        cx.count(forward::Error::Packets, packets);
        cx.count(forward::Error::Hit, packets);
    }
}
