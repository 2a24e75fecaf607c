//! `nat44-ei-in2out` and its like: packets of sessions that are known.
//! features of `ip4-unicast` | of `ip4-output` -> **nat44-ei-in2out** -> the next feature | nat44-ei-in2out-slowpath |
//! nat44-ei-in2out-worker-handoff | ip4-icmp-error
//!
//! Staged: the sessions of a frame's packets are looked for side by side.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_flow::{Ip4Flow, Search};
use shoal_graph::{Counts, Cx, NextNodes, StatefulStagedNode};
use shoal_ip4::IcmpError;
use shoal_nat::icmp::Quoted;
use shoal_nat::{Kind, ParsedPacket, Sum};
use shoal_nat44::packet::{SYN, Ticket, clamp, front, is_expiring, look_up_in, seen, table};

use super::Trace;
pub use super::next::{BOTH, HAIRPIN, IN2OUT, Next, OUT2IN, OUTPUT};
use crate::config::Config;
use crate::error::Error;
use crate::session_direction::Marks;
use crate::session_stores::SessionStores;
use crate::sessions::{Query, Sessions, TICKS, inside_key, outside_key, tick};
use crate::shared::Shared;

/// The code of all four nodes.
pub struct Fast<const WAY: u8> {
    pub(crate) shared: Arc<Shared>,
}

impl<const WAY: u8> Counts for Fast<WAY> {
    type Error = Error;
}

/// What a packet of a session is looked for by.
fn key_of(seen: &ParsedPacket, table: u32, to_host: bool) -> Option<Ip4Flow> {
    let tuple = seen.tuple;
    matches!(seen.kind, Kind::Tcp | Kind::Udp | Kind::Query).then(|| {
        if to_host {
            outside_key((tuple.dst, tuple.dport), seen.protocol, table)
        } else {
            inside_key((tuple.src, tuple.sport), seen.protocol, table)
        }
    })
}

impl<const WAY: u8> Fast<WAY> {
    #[inline(always)]
    fn front(pkt: &Packet<'_>) -> usize {
        if WAY == OUTPUT { front::<true>(pkt) } else { front::<false>(pkt) }
    }

    #[inline(always)]
    pub(super) fn table(&self, pkt: &Packet<'_>) -> u32 {
        if WAY == OUTPUT {
            table::<true>(&self.shared.interfaces, pkt)
        } else {
            table::<false>(&self.shared.interfaces, pkt)
        }
    }

    /// The interface whose packets are counted.
    #[inline(always)]
    fn counted(pkt: &Packet<'_>) -> SwIfIndex {
        if WAY == OUTPUT { pkt.tx() } else { pkt.rx() }
    }

    /// Whether a packet goes to a host. By an interface on both sides come those of hosts, too: what is for a shared address comes
    /// from outside.
    #[inline(always)]
    fn is_to_host(config: &Config, seen: &ParsedPacket) -> bool {
        match WAY {
            OUT2IN => true,
            BOTH => {
                let (dst, dport) = (seen.tuple.dst, seen.tuple.dport);
                config.is_known(dst, dport, seen.protocol)
            }
            _ => false,
        }
    }

    fn trace(pkt: &Packet<'_>, next: Next, session: i64, cx: &Cx<'_, Self>) {
        let (name, word) = match WAY {
            OUT2IN => ("NAT44_OUT2IN", "session index"),
            BOTH => ("NAT44_EI_CLASSIFY", "session"),
            _ => ("NAT44_IN2OUT_FAST_PATH", "session"),
        };
        let interface = Self::counted(pkt).0;
        cx.trace(pkt, || Trace { name, interface, next: next.edge().0.into(), word, session });
    }

    /// The thread that has the packet's session.
    fn owner(config: &Config, pkt: &Packet<'_>, front: usize, seen: &ParsedPacket, to_host: bool) -> usize {
        let (mut tuple, mut protocol) = (seen.tuple, seen.protocol);
        if seen.kind == Kind::Error {
            let bytes = pkt.data().get(front..).unwrap_or_default();
            if let Ok(quoted) = Quoted::read(bytes, seen.header.into(), None) {
                (tuple, protocol) = (quoted.answer, quoted.protocol);
            }
        }
        if to_host { config.of_outside(tuple, protocol) } else { config.of_host(tuple.src) }
    }

    /// The packet needs a decision, here or on the thread that has its session.
    #[inline(never)]
    fn aside(&self, config: &Config, mut pkt: Packet<'_>, cx: Cx<'_, Self>) -> Next {
        // NAT is off.
        if !config.on {
            return Next::Feature(cx.next_feature(&mut pkt));
        }
        let front = Self::front(&pkt);
        let seen = seen(self.shared.words, &pkt, front);
        let to_host = seen.is_some_and(|seen| Self::is_to_host(config, &seen));
        let owner = seen.map_or(cx.thread(), |seen| Self::owner(config, &pkt, front, &seen, to_host));
        let thread = owner as u32;
        let next = if owner == cx.thread() {
            let next = cx.target(cx.next_feature(&mut pkt)).number();
            *pkt.scratch::<Ticket>() = Ticket { thread, next };
            match WAY {
                OUTPUT => Next::OutputSlow,
                _ if to_host => Next::Out2inSlow,
                _ => Next::In2outSlow,
            }
        } else {
            *pkt.scratch::<Ticket>() = Ticket { thread, next: 0 };
            match WAY {
                OUT2IN => Next::Out2inHandoff,
                BOTH => Next::BothHandoff,
                OUTPUT => Next::OutputHandoff,
                _ => Next::In2outHandoff,
            }
        };
        Self::trace(&pkt, next, -1, &cx);
        next
    }
}

impl<const WAY: u8> StatefulStagedNode for Fast<WAY> {
    const NAME: &'static str = match WAY {
        IN2OUT => "nat44-ei-in2out",
        OUT2IN => "nat44-ei-out2in",
        BOTH => "nat44-ei-classify",
        _ => "nat44-ei-in2out-output",
    };
    type Feature = SessionStores;
    type Next = Next;
    type Trace = Trace;
    type Key = Query;

    #[inline(always)]
    fn prepare(&self, sessions: &mut Sessions, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Query {
        let Some(seen) = seen(self.shared.words, pkt, Self::front(pkt)) else { return Search::default() };
        let to_host =
            WAY == OUT2IN || WAY == BOTH && Self::is_to_host(self.shared.config.load(cx.guard()), &seen);
        key_of(&seen, self.table(pkt), to_host).map_or_else(Search::default, |key| sessions.search(key))
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
    ) -> Result<Next, Error> {
        let (config, now) = (self.shared.config.load(cx.guard()), cx.now());
        let front = Self::front(pkt);
        let found = sessions.table().and_then(|table| table.find(&search));
        let (Some(seen), Some(mut flow)) = (seen(self.shared.words, pkt, front), found) else {
            return Ok(self.aside(config, pkt.reborrow(), cx.aside()));
        };
        // What goes to another host is not done here.
        let to_host = flow.value().marks.has(Marks::INWARD);
        if !to_host && config.is_known(seen.tuple.dst, seen.tuple.dport, seen.protocol) {
            return Ok(self.aside(config, pkt.reborrow(), cx.aside()));
        }
        if WAY != OUTPUT && is_expiring(pkt) {
            IcmpError::TTL.ask(pkt);
            return Ok(Next::IcmpError);
        }
        let ticks = tick(now);
        flow.touch(ticks);
        let (handle, way) = (flow.handle(), flow.value_mut());
        way.count(pkt.len().saturating_sub(front));
        let rewrite = way.rewrite(seen.tuple, seen.kind);
        let (peer, marks) = (way.peer, way.marks);
        let is_new = (ticks.0 as u32).wrapping_sub(way.moved) >= TICKS as u32 || !marks.has(Marks::USED);
        let sum = Sum::of(pkt);
        let bytes = pkt.data_mut().get_mut(front..).ok_or(Error::CannotTranslate)?;
        rewrite.write(bytes, seen.header.into(), seen.kind, seen.first, sum).ok_or(Error::CannotTranslate)?;
        if seen.flags & SYN != 0 && seen.kind == Kind::Tcp {
            clamp(config.mss, &seen, pkt, front);
        }
        if is_new {
            sessions.used(handle, config.refresh.saturating_mul(TICKS as u32), now);
            self.shared.pass_on(cx.thread(), sessions);
        }
        if marks.has(Marks::OTHER_TABLE)
            && let Some(table) = sessions.peer_table(peer)
        {
            look_up_in(pkt, table);
        }
        let interface = Self::counted(pkt);
        self.shared.counters.path(to_host, false, seen.kind).add(seen.kind, cx.thread(), interface);
        let next = Next::Feature(cx.next_feature(pkt));
        if cx.tracing() {
            Self::trace(pkt, next, handle.index().into(), cx);
        }
        Ok(next)
    }
}
