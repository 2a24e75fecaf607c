//! `l2-learn`: where is the station that sent a frame?
//! l2-input -> **l2-learn** -> the next feature
//!
//! A staged node, because there may be more stations than the cache holds. All sources of a frame are learned before the
//! first of its packets is forwarded: an answer finds the way at once.

use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{Counts, Cx, StagedNode};
use shoal_interface::SwIfIndex;
use shoal_l2::{Input, InputNext as Next, L2Data, Path};
use shoal_wire::EthernetHeader;

use super::{Query, Trace};
use crate::entry::{Entry, Key};
use crate::fib::{FoundEntry, Refused, Search};
use crate::loops::{LoopSeen, LoopWatch};
use crate::table::{DomainTable, minute};

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// L2 learn packets
    #[counter("l2learn")]
    Packets,
    /// L2 learn misses
    #[counter("miss")]
    Miss,
    /// L2 mac moves
    #[counter("mac_move")]
    Move,
    /// L2 mac move violations
    #[counter("mac_move_violate")]
    Violation,
    /// L2 not learned due to limit
    #[counter("limit")]
    Limit,
    /// L2 learn hit updates
    #[counter("hit_update")]
    Update,
    /// L2 filter mac drops
    #[counter("filter_drop")]
    Filter,
    /// L2 not learned, the table has no room
    #[counter("table_full")]
    #[severity(warn)]
    Full,
    /// L2 not learned, source mac is a group address
    #[counter("group_source")]
    #[severity(warn)]
    Group,
    /// L2 loops seen, a station moves too often
    #[counter("loop_seen")]
    #[severity(warn)]
    Loop,
}

/// Learns.
pub struct Learn {
    /// The way through the features.
    pub path: Path,
    /// All domains and stations.
    pub table: DomainTable,
    /// What is noted of stations that move.
    pub(crate) loops: LoopWatch,
}

impl Counts for Learn {
    type Error = Error;
}

impl StagedNode for Learn {
    const NAME: &'static str = "l2-learn";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;
    type Key = Query;

    #[inline(always)]
    fn prepare(&self, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Query {
        let Some(header) = pkt.header::<EthernetHeader>() else { return Query::default() };
        let domain = self.path.data(pkt.rx(), cx.guard()).domain();
        Query::new(self.table.macs().search(Key::new(header.src(), domain)))
    }

    #[inline(always)]
    fn seek(&self, all: &mut [Query], cx: &mut Cx<'_, Self>) {
        Query::find_all(all, self.table.macs());
        cx.count(Error::Packets, all.len() as u64);
    }

    #[inline(always)]
    fn packet(&self, query: Query, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        let data = self.path.data(rx, cx.guard());
        cx.trace(pkt, || Trace::new("l2-learn:", pkt, data.domain()));
        let settled = query.entry().is_some_and(|entry| self.is_settled(entry, rx, data, cx));
        if !settled {
            self.news(&query.search, rx, data, &cx.aside())?;
        }
        Ok(self.path.behind(pkt, Input::Learn, cx.guard()).map_or(Next::BitmapDrop, Next::To))
    }
}

impl Learn {
    /// The word of a station that is heard now.
    #[inline(always)]
    fn entry(rx: SwIfIndex, flags: u8, data: &L2Data, cx: &Cx<'_, Self>) -> Entry {
        Entry::new(rx, flags, minute(cx.now()), data.sequence())
    }

    /// Whether a frame says nothing new of its sender.
    #[inline(always)]
    pub(crate) fn is_settled(&self, entry: Entry, rx: SwIfIndex, data: &L2Data, cx: &Cx<'_, Self>) -> bool {
        let is_current = || entry.sequence() == data.sequence() && self.is_young(entry, data, cx);
        entry.interface() == rx && (!entry.is_learned() || is_current())
    }

    /// Whether a station was heard in this minute, or need not be.
    #[inline(always)]
    pub(crate) fn is_young(&self, entry: Entry, data: &L2Data, cx: &Cx<'_, Self>) -> bool {
        entry.minute() == minute(cx.now()) || self.table.age(data.domain()) == 0
    }

    /// A frame that brings news of its sender, unless another frame has just brought the same.
    #[cold]
    #[inline(never)]
    fn news(&self, search: &Search, rx: SwIfIndex, data: &L2Data, cx: &Cx<'_, Self>) -> Result<(), Error> {
        match self.table.macs().find(search) {
            Some(found) if found.entry.interface() == rx => self.again(&found, rx, data, cx),
            Some(found) => self.moved(search, &found, data, (rx, cx))?,
            None => self.miss(search, rx, data, cx),
        }
        Ok(())
    }

    /// A station that is known there. Its word is written only when that says something new.
    fn again(&self, found: &FoundEntry, rx: SwIfIndex, data: &L2Data, cx: &Cx<'_, Self>) {
        let entry = found.entry;
        if !self.is_settled(entry, rx, data, cx) {
            self.table.macs().change(found, Self::entry(entry.interface(), entry.flags(), data, cx));
            cx.count(Error::Update, 1);
        }
    }

    /// A station that was elsewhere.
    #[cold]
    fn moved(
        &self,
        search: &Search,
        found: &FoundEntry,
        data: &L2Data,
        at: (SwIfIndex, &Cx<'_, Self>),
    ) -> Result<(), Error> {
        let (rx, cx) = at;
        let entry = found.entry;
        if entry.has(Entry::FILTER) {
            return Err(Error::Filter);
        }
        if entry.has(Entry::STATIC) {
            return Err(Error::Violation);
        }
        // One that an operator entered becomes a learned one.
        if !entry.is_learned() && !self.table.may_learn(data.domain()) {
            cx.count(Error::Limit, 1);
            return Ok(());
        }
        let news = if self.table.tells_news() { Entry::LEARN_EVENT | Entry::LEARN_MOVE } else { 0 };
        let changed = self.table.macs().change(found, Self::entry(rx, news, data, cx));
        if changed {
            cx.count(Error::Move, 1);
            let (seen, most) = (
                LoopSeen { key: search.key, from: entry.interface(), to: rx },
                self.table.move_limit(data.domain()),
            );
            if most != 0 && self.loops.moved(seen, most, cx.now()) {
                cx.count(Error::Loop, 1);
            }
        } else if !entry.is_learned() {
            self.table.unlearned(data.domain());
        }
        Ok(())
    }

    /// A station that is not known.
    #[cold]
    fn miss(&self, search: &Search, rx: SwIfIndex, data: &L2Data, cx: &Cx<'_, Self>) {
        let mac = search.key.mac();
        if mac.is_zero() {
            return;
        }
        if mac.is_multicast() {
            return cx.count(Error::Group, 1);
        }
        cx.count(Error::Miss, 1);
        if !self.table.may_learn(data.domain()) {
            return cx.count(Error::Limit, 1);
        }
        let news = if self.table.tells_news() { Entry::LEARN_EVENT } else { 0 };
        let entered = self.table.macs().enter(search.key, Self::entry(rx, news, data, cx));
        if let Err(why) = entered {
            self.table.unlearned(data.domain());
            if why == Refused::Full {
                cx.count(Error::Full, 1);
            }
        }
    }
}
