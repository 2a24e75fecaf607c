//! Packets of established sessions on a fused path.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_flow::{Handle, TableId};
use shoal_graph::clock::Time;
use shoal_graph::superpath::{FlowOptional, Pass, StatefulOptional, WithState};
use shoal_graph::{Cx, StatefulStagedNode};
use shoal_infra::Guard;
use shoal_nat::{Kind, ParsedPacket, PortPacket, Sum};
use shoal_nat44::staged::{flow_of, portless};

use super::fast::Fast;
use super::next::{IN2OUT, OUT2IN};
use crate::config::{Config, ticks_of};
use crate::control::SessionStores;
use crate::packet::{SYN, clamp, is_expiring, key_of, rewrite};
use crate::session_direction::Marks;
use crate::sessions::{Query, Sessions, tick};

/// The nodes' common cases, for chains.
pub struct Nat44Stages {
    /// From hosts.
    pub in2out: Arc<WithState<Fast<IN2OUT>>>,
    /// To hosts.
    pub out2in: Arc<WithState<Fast<OUT2IN>>>,
}

/// A session whose packets need more than to be rewritten.
const ASIDE: u8 = Marks::OTHER_TABLE | Marks::HAIRPIN;

/// Sessions that stay in a processor's own cache.
const NEAR: usize = 1024;

/// What holds for the packets of an interface.
#[derive(Clone, Copy)]
pub struct InterfaceFacts<'g> {
    config: &'g Config,
    /// The forwarding table they come by.
    table: u32,
}

/// Whole packets of established sessions are translated; the node sees to the others.
impl<const WAY: u8> StatefulOptional for Fast<WAY> {
    const NAME: &'static str = <Self as StatefulStagedNode>::NAME;
    type Feature = SessionStores;
    type Facts<'g> = InterfaceFacts<'g>;

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> InterfaceFacts<'g> {
        let table = self.shared.interfaces.ip4_table(interface);
        InterfaceFacts { config: self.shared.config.load(guard), table }
    }

    #[inline(always)]
    fn pass(
        &self,
        sessions: &mut Sessions,
        facts: InterfaceFacts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        self.follow(sessions, facts, None, pkt, cx)
    }
}

impl<const WAY: u8> FlowOptional for Fast<WAY> {
    type Query = Query;

    fn table(&self, interface: SwIfIndex) -> u32 {
        self.shared.interfaces.ip4_table(interface)
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
        *query = sessions.search(query.key().in_table(TableId::new(table).unwrap_or_default()));
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut Query) {
        sessions.seek_one(query);
    }

    #[inline(always)]
    fn follow(
        &self,
        sessions: &mut Sessions,
        InterfaceFacts { config, table: by }: InterfaceFacts<'_>,
        query: Option<&Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let Some(seen) = PortPacket::read(pkt.data()) else {
            return self.follow_other(sessions, config, query, pkt.reborrow(), &cx.aside());
        };
        let Some(table) = sessions.table() else { return Pass::Leave };
        let Some(mut flow) = table.find_by(query, flow_of(&seen, by)) else {
            return Pass::Leave;
        };
        let (now, marks, state) = (tick(cx.now()), flow.value().marks, flow.value().state);
        if marks.has(ASIDE | Marks::OUTPUT) {
            if marks.waits_for_output() {
                return Pass::On;
            }
            if marks.has(ASIDE) {
                return Pass::Leave;
            }
        }
        if seen.ttl <= 1 {
            return Pass::Leave;
        }
        if !flow.is_touched(now) {
            if flow.age(now) >= ticks_of(&config.timeouts, state.timeout()) {
                return Pass::Leave;
            }
            flow.touch(now);
        }
        let (handle, way) = (flow.handle(), flow.value_mut());
        way.count(pkt.len());
        let (rewrite, sum) = (way.rewrite(), Sum::of(pkt));
        if rewrite.write_port_packet(pkt.data_mut(), seen.is_tcp, sum).is_none() {
            return Pass::Leave;
        }
        if seen.is_tcp && (seen.flags & SYN != 0 || state.is_moved_by(seen.flags)) {
            moved(sessions, config, (handle, seen.flags), pkt.reborrow(), cx.now());
        }
        self.count(seen.kind(), pkt, cx);
        if rewrite.to.dst == seen.addresses as u32 { Pass::On } else { Pass::Redirected }
    }
}

impl<const WAY: u8> Fast<WAY> {
    /// Packets without ports. The node sees to fragments, and to what [`PortPacket`] does not read though it has ports.
    #[inline(never)]
    fn follow_other(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        query: Option<&Query>,
        mut pkt: Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let Some(seen) = portless(pkt.data()) else { return Pass::Leave };
        let Some(key) = key_of(&seen, self.table(&pkt)) else { return Pass::Leave };
        let Some(table) = sessions.table() else { return Pass::Leave };
        let Some(mut flow) = table.find_by(query, key) else { return Pass::Leave };
        let (now, way) = (tick(cx.now()), *flow.value());
        if way.marks.waits_for_output() {
            return Pass::On;
        }
        let ended = flow.age(now) >= ticks_of(&config.timeouts, way.timeout());
        if ended || way.marks.has(ASIDE) || is_expiring(&pkt) {
            return Pass::Leave;
        }
        flow.touch(now);
        if rewrite(flow.value_mut(), &seen, &mut pkt, 0).is_none() {
            return Pass::Leave;
        }
        self.count(seen.kind, &pkt, cx);
        if way.to().dst == seen.tuple.dst { Pass::On } else { Pass::Redirected }
    }

    #[inline(always)]
    fn count(&self, kind: Kind, pkt: &Packet<'_>, cx: &Cx<'_, Self>) {
        let [in2out, out2in] = &self.shared.counters.fast;
        let counter = if WAY == IN2OUT { in2out } else { out2in };
        counter.add(kind, cx.thread(), pkt.rx());
    }
}

/// What is looked for, of a packet that [`PortPacket`] does not read.
#[inline(never)]
fn query_of_other(bytes: &[u8]) -> Query {
    portless(bytes).and_then(|seen| key_of(&seen, 0)).map_or_else(Query::default, Query::of)
}

/// A segment that may move the state of its connection. The node does not see to it: packets behind it would overtake it.
#[cold]
fn moved(
    sessions: &mut Sessions,
    config: &Config,
    (handle, flags): (Handle, u8),
    mut pkt: Packet<'_>,
    now: Time,
) {
    if let Some(seen) = ParsedPacket::read(pkt.data()) {
        clamp(config.mss, &seen, &mut pkt, 0);
    }
    sessions.tcp(handle, flags, now);
}
