//! Packets of established sessions on a fused path.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_flow::{Handle, Ip4Flow, TableId};
use shoal_graph::superpath::{FlowOptional, Pass, StatefulOptional, WithState};
use shoal_graph::{Cx, StatefulStagedNode};
use shoal_infra::Guard;
use shoal_nat::{Kind, ParsedPacket, PortPacket, Rewrite, Sum, Tuple};
use shoal_nat44::packet::{SYN, clamp, is_expiring};
use shoal_nat44::staged::{flow_of, portless};

use super::fast::Fast;
use super::next::{IN2OUT, OUT2IN};
use crate::config::Config;
use crate::session_direction::Marks;
use crate::session_stores::SessionStores;
use crate::sessions::{Query, Sessions, TICKS, tick};

/// The nodes' common cases, for chains.
pub struct Nat44EiStages {
    /// From hosts.
    pub in2out: Arc<WithState<Fast<IN2OUT>>>,
    /// To hosts.
    pub out2in: Arc<WithState<Fast<OUT2IN>>>,
}

/// Sessions that stay in a processor's own cache.
const NEAR: usize = 1024;

/// Beside the number of a forwarding table: packets that come by it are looked for by where they go. Numbers of tables are smaller.
const TO_HOST: u32 = 1 << 31;

/// The part of a flow that tells its session: only one of its ends counts.
#[inline(always)]
fn end_of(flow: &Ip4Flow, to_host: bool) -> Ip4Flow {
    if to_host { flow.of_destination() } else { flow.of_source() }
}

/// Whole packets of established sessions are translated; the node sees to the others, and to what goes to another host.
impl<const WAY: u8> StatefulOptional for Fast<WAY> {
    const NAME: &'static str = <Self as StatefulStagedNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = &'g Config;

    fn facts<'g>(&'g self, _: SwIfIndex, guard: Guard<'g>) -> &'g Config {
        self.shared.config.load(guard)
    }

    #[inline(always)]
    fn pass(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        self.follow(sessions, config, None, pkt, cx)
    }
}

impl<const WAY: u8> FlowOptional for Fast<WAY> {
    type Query = Query;

    fn table(&self, interface: SwIfIndex) -> u32 {
        let table = self.shared.interfaces.ip4_table(interface);
        if WAY == OUT2IN { table | TO_HOST } else { table }
    }

    fn is_far(sessions: &Sessions) -> bool {
        sessions.len() > NEAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Query {
        let Some(bytes) = pkt.data().get(offset..) else { return Query::default() };
        match PortPacket::read(bytes) {
            Some(seen) => Query::of(flow_of(&seen, 0)),
            None => query_of_other(bytes),
        }
    }

    #[inline(always)]
    fn begin(sessions: &mut Sessions, table: u32, query: &mut Query) {
        let end = end_of(query.key(), table & TO_HOST != 0);
        *query = sessions.search(end.in_table(TableId::new(table & !TO_HOST).unwrap_or_default()));
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut Query) {
        sessions.seek_one(query);
    }

    #[inline(always)]
    fn follow(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        query: Option<&Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let Some(seen) = PortPacket::read(pkt.data()) else {
            return self.follow_query(sessions, config, query, pkt.reborrow(), &cx.aside());
        };
        let flow = flow_of(&seen, self.table(pkt));
        let tuple = seen.tuple();
        if seen.ttl <= 1 || Self::may_hairpin(config, tuple, seen.protocol()) {
            return Pass::Leave;
        }
        let Some(found) = Self::session(sessions, (query, flow), (tuple, seen.kind()), pkt, cx) else {
            return Pass::Leave;
        };
        let sum = Sum::of(pkt);
        if found.rewrite.write_port_packet(pkt.data_mut(), seen.is_tcp, sum).is_none() {
            return Pass::Leave;
        }
        if seen.flags & SYN != 0 {
            clamped(config, pkt.reborrow());
        }
        self.done(sessions, config, &found, seen.kind(), pkt, cx)
    }
}

/// The session of a packet, and what is done to it.
struct Followed {
    handle: Handle,
    rewrite: Rewrite,
    /// It has not been used for a second, or never in this direction.
    is_new: bool,
}

impl<const WAY: u8> Fast<WAY> {
    /// Whether a host's packet may go to another host: by a shared address.
    #[inline(always)]
    fn may_hairpin(config: &Config, tuple: Tuple, protocol: u8) -> bool {
        WAY != OUT2IN && config.is_known(tuple.dst, tuple.dport, protocol)
    }

    /// The session of a packet, which counts it. `None` if there is none, or if its packets go by another table.
    #[inline(always)]
    fn session(
        sessions: &mut Sessions,
        (query, flow): (Option<&Query>, Ip4Flow),
        (tuple, kind): (Tuple, Kind),
        pkt: &Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Option<Followed> {
        let mut flow = sessions.table()?.find_by(query, end_of(&flow, WAY == OUT2IN))?;
        if flow.value().marks.has(Marks::OTHER_TABLE) {
            return None;
        }
        let now = tick(cx.now());
        if !flow.is_touched(now) {
            flow.touch(now);
        }
        let (handle, way) = (flow.handle(), flow.value_mut());
        way.count(pkt.len());
        let is_new = (now.0 as u32).wrapping_sub(way.moved) >= TICKS as u32 || !way.marks.has(Marks::USED);
        Some(Followed { handle, rewrite: way.rewrite(tuple, kind), is_new })
    }

    /// The packet has been translated.
    #[inline(always)]
    fn done(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        found: &Followed,
        kind: Kind,
        pkt: &Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        if found.is_new {
            self.used(sessions, config, found.handle, cx);
        }
        self.shared.counters.path(WAY == OUT2IN, false, kind).add(kind, cx.thread(), pkt.rx());
        if WAY == OUT2IN { Pass::Redirected } else { Pass::On }
    }

    #[inline(never)]
    fn used(&self, sessions: &mut Sessions, config: &Config, handle: Handle, cx: &Cx<'_, Self>) {
        sessions.used(handle, config.refresh.saturating_mul(TICKS as u32), cx.now());
        self.shared.pass_on(cx.thread(), sessions);
    }

    /// ICMP queries. The node sees to fragments, errors and protocols without ports.
    #[inline(never)]
    fn follow_query(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        query: Option<&Query>,
        mut pkt: Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let Some(seen) = query_packet(pkt.data()) else { return Pass::Leave };
        if is_expiring(&pkt) || Self::may_hairpin(config, seen.tuple, seen.protocol) {
            return Pass::Leave;
        }
        let flow = flow_of_query(&seen, self.table(&pkt));
        let Some(found) = Self::session(sessions, (query, flow), (seen.tuple, seen.kind), &pkt, cx) else {
            return Pass::Leave;
        };
        let (sum, header) = (Sum::of(&pkt), seen.header.into());
        if found.rewrite.write(pkt.data_mut(), header, seen.kind, seen.first, sum).is_none() {
            return Pass::Leave;
        }
        self.done(sessions, config, &found, seen.kind, &pkt, cx)
    }
}

/// A whole ICMP query.
#[inline(always)]
fn query_packet(bytes: &[u8]) -> Option<ParsedPacket> {
    portless(bytes).filter(|seen| seen.kind == Kind::Query)
}

/// Its flow.
#[inline(always)]
fn flow_of_query(seen: &ParsedPacket, table: u32) -> Ip4Flow {
    let (Tuple { src, dst, sport, dport }, table) = (seen.tuple, TableId::new(table).unwrap_or_default());
    Ip4Flow::new((src.into(), sport), (dst.into(), dport), seen.protocol, table)
}

/// What is looked for, of a packet that [`PortPacket`] does not read.
#[inline(never)]
fn query_of_other(bytes: &[u8]) -> Query {
    query_packet(bytes).map_or_else(Query::default, |seen| Query::of(flow_of_query(&seen, 0)))
}

/// The first segment of a connection.
#[cold]
fn clamped(config: &Config, mut pkt: Packet<'_>) {
    if let Some(seen) = ParsedPacket::read(pkt.data()) {
        clamp(config.mss, &seen, &mut pkt, 0);
    }
}
