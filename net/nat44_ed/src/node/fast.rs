//! `nat44-ed-in2out` and its like: packets of sessions that are known.
//! features of `ip4-unicast` | of `ip4-output` -> **nat44-ed-in2out** -> the next feature | nat44-ed-in2out-slowpath |
//! nat44-in2out-worker-handoff | ip4-icmp-error
//!
//! Staged: the sessions of a frame's packets are looked for side by side.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_flow::Search;
use shoal_graph::{Counts, Cx, StatefulStagedNode};
use shoal_ip4::IcmpError;
use shoal_nat::Kind;
use shoal_nat::icmp::Quoted;

pub use super::next::{BOTH, IN2OUT, Next, OUT2IN, OUTPUT};
use super::trace::{FastTrace, Key, LookupOutcome};
use crate::config::{Config, ticks_of};
use crate::control::SessionStores;
use crate::decide::is_from_outside;
use crate::error::In2outError;
use crate::owner::Direction;
use crate::packet::{SYN, Ticket, clamp, front, is_expiring, key_of, look_up_in, rewrite, seen, table};
use crate::session_direction::Marks;
use crate::sessions::{Query, Sessions, key, tick};
use crate::shared::Shared;

/// The code of all four nodes.
pub struct Fast<const WAY: u8> {
    pub(crate) shared: Arc<Shared>,
}

impl<const WAY: u8> Counts for Fast<WAY> {
    type Error = In2outError;
}

/// Whether the IP header is behind the link's.
const fn is_output(way: u8) -> bool {
    way == OUTPUT
}

impl<const WAY: u8> Fast<WAY> {
    #[inline(always)]
    fn front(pkt: &Packet<'_>) -> usize {
        if is_output(WAY) { front::<true>(pkt) } else { front::<false>(pkt) }
    }

    #[inline(always)]
    pub(super) fn table(&self, pkt: &Packet<'_>) -> u32 {
        if is_output(WAY) {
            table::<true>(&self.shared.interfaces, pkt)
        } else {
            table::<false>(&self.shared.interfaces, pkt)
        }
    }

    /// The interface whose packets are counted.
    #[inline(always)]
    fn counted(pkt: &Packet<'_>) -> SwIfIndex {
        if is_output(WAY) { pkt.tx() } else { pkt.rx() }
    }

    fn trace(pkt: &Packet<'_>, search: &Query, found: LookupOutcome, cx: &Cx<'_, Self>) {
        let name = match WAY {
            OUT2IN => "NAT44_OUT2IN_ED_FAST_PATH",
            BOTH => "NAT44_ED_CLASSIFY",
            _ => "NAT44_IN2OUT_ED_FAST_PATH",
        };
        let (interface, thread) = (Self::counted(pkt).0, cx.thread());
        cx.trace(pkt, || FastTrace { name, interface, key: Key(*search.key()), thread, found });
    }

    /// The packet needs a decision, here or on the thread that has its session.
    #[inline(never)]
    fn aside(
        &self,
        config: &Config,
        sessions: &mut Sessions,
        (search, found): (Query, LookupOutcome),
        mut pkt: Packet<'_>,
        cx: Cx<'_, Self>,
    ) -> Next {
        // NAT is off.
        if config.sessions == 0 {
            return Next::Feature(cx.next_feature(&mut pkt));
        }
        let front = Self::front(&pkt);
        let seen = seen(self.shared.words, &pkt, front);
        let from_outside = match WAY {
            OUT2IN => true,
            BOTH => seen.is_some_and(|seen| is_from_outside(config, &seen)),
            _ => false,
        };
        let way = if from_outside { Direction::Out2in } else { Direction::In2out };
        let mut asked = seen.map(|seen| (seen.tuple, seen.protocol));
        if let Some(seen) = seen.filter(|seen| seen.kind == Kind::Error) {
            let bytes = pkt.data().get(front..).unwrap_or_default();
            let quoted = Quoted::read(bytes, seen.header.into(), None);
            asked = quoted.ok().map(|quoted| (quoted.answer, quoted.protocol));
        }
        let owner = match asked {
            Some((tuple, protocol)) => {
                let left = is_output(WAY) && {
                    let tables = [self.table(&pkt), self.shared.interfaces.ip4_table(pkt.tx())];
                    tables
                        .iter()
                        .any(|table| sessions.find(key(tuple.reversed(), protocol, *table)).is_some())
                };
                if left { cx.thread() } else { config.owner(tuple, protocol, way) }
            }
            None => cx.thread(),
        };
        let thread = owner as u32;
        if owner != cx.thread() && matches!(found, LookupOutcome::None) {
            Self::trace(&pkt, &search, LookupOutcome::Elsewhere(owner), &cx);
            *pkt.scratch::<Ticket>() = Ticket { thread, next: 0 };
            return match WAY {
                OUT2IN => Next::Out2inHandoff,
                BOTH => Next::BothHandoff,
                OUTPUT => Next::OutputHandoff,
                _ => Next::In2outHandoff,
            };
        }
        Self::trace(&pkt, &search, found, &cx);
        let next = cx.target(cx.next_feature(&mut pkt)).number();
        *pkt.scratch::<Ticket>() = Ticket { thread, next };
        match WAY {
            OUTPUT => Next::OutputSlow,
            _ if from_outside => Next::Out2inSlow,
            _ => Next::In2outSlow,
        }
    }
}

impl<const WAY: u8> StatefulStagedNode for Fast<WAY> {
    const NAME: &'static str = match WAY {
        IN2OUT => "nat44-ed-in2out",
        OUT2IN => "nat44-ed-out2in",
        BOTH => "nat44-ed-classify",
        _ => "nat44-ed-in2out-output",
    };
    type Feature = SessionStores;
    type Next = Next;
    type Trace = FastTrace;
    type Key = Query;

    #[inline(always)]
    fn prepare(&self, sessions: &mut Sessions, pkt: &Packet<'_>, _: &mut Cx<'_, Self>) -> Query {
        let Some(seen) = seen(self.shared.words, pkt, Self::front(pkt)) else { return Search::default() };
        key_of(&seen, self.table(pkt)).map_or_else(Search::default, |key| sessions.search(key))
    }

    #[inline(always)]
    fn seek(&self, sessions: &mut Sessions, keys: &mut [Query], _: &mut Cx<'_, Self>) {
        sessions.seek(keys);
    }

    #[inline(always)]
    fn packet(
        &self,
        sessions: &mut Sessions,
        search: Query,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, In2outError> {
        let (config, now) = (self.shared.config.load(cx.guard()), cx.now());
        let front = Self::front(pkt);
        let Some(seen) = seen(self.shared.words, pkt, front) else {
            return Ok(self.aside(
                config,
                sessions,
                (search, LookupOutcome::None),
                pkt.reborrow(),
                cx.aside(),
            ));
        };
        let found = match sessions.table() {
            Some(table) => table.find(&search),
            None => None,
        };
        let Some(mut flow) = found else {
            return Ok(self.aside(
                config,
                sessions,
                (search, LookupOutcome::None),
                pkt.reborrow(),
                cx.aside(),
            ));
        };
        let marks = flow.value().marks;
        if is_output(WAY) {
            // That it passed when it came in says nothing of how it goes out.
            if marks.passes_in() {
                return Ok(self.aside(
                    config,
                    sessions,
                    (search, LookupOutcome::None),
                    pkt.reborrow(),
                    cx.aside(),
                ));
            }
        } else if marks.waits_for_output() {
            return Ok(Next::Feature(cx.next_feature(pkt)));
        }
        if flow.age(tick(now)) >= ticks_of(&config.timeouts, flow.value().timeout()) {
            return Ok(self.aside(
                config,
                sessions,
                (search, LookupOutcome::TimedOut),
                pkt.reborrow(),
                cx.aside(),
            ));
        }
        if !is_output(WAY) && is_expiring(pkt) {
            IcmpError::TTL.ask(pkt);
            return Ok(Next::IcmpError);
        }
        flow.touch(tick(now));
        let (handle, way) = (flow.handle(), flow.value_mut());
        rewrite(way, &seen, pkt, front).ok_or(In2outError::CannotTranslate)?;
        let (peer, state) = (way.peer, way.state);
        if seen.kind == Kind::Tcp && (seen.flags & SYN != 0 || state.is_moved_by(seen.flags)) {
            clamp(config.mss, &seen, pkt, front);
            sessions.tcp(handle, seen.flags, now);
        }
        if marks.has(Marks::OTHER_TABLE)
            && let Some(key) = sessions.peer_key(peer)
        {
            look_up_in(pkt, key.table().number());
        }
        let counters = &self.shared.counters;
        let interface = Self::counted(pkt);
        if marks.has(Marks::HAIRPIN) {
            counters.hairpinning.add(cx.thread(), interface.0 as usize, 1);
        }
        let outward = WAY == IN2OUT || WAY == OUTPUT || (WAY == BOTH && !marks.has(Marks::INWARD));
        let [in2out, out2in] = &counters.fast;
        let counter = if outward { in2out } else { out2in };
        counter.add(seen.kind, cx.thread(), interface);
        if cx.tracing() {
            Self::trace(pkt, &search, LookupOutcome::Session(handle.index()), cx);
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
