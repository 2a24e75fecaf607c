//! `cnat-input-ip4`, `cnat-output-ip4`, `ip4-cnat-tx`, `ip4-cnat-return` and the same of IPv6: packets follow their sessions.
//! features of `ip4-unicast` and `ip4-output` | ip4-lookup -> **cnat-input-ip4** -> the next feature | ip4-lookup | ip4-load-balance |
//! ip4-icmp-error | cnat-input-ip4-worker-handoff
//!
//! Staged: the sessions of a frame's packets are looked for side by side.

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_fib::FibIndex;
use shoal_flow::{Handle, Search};
use shoal_graph::{Counts, Cx, StatefulStagedNode};
use shoal_nat::{Flow, Kind};
use shoal_nat44::packet::{Ticket, front};

use super::Error;
use super::place::{Next, Place, is_ip6, names, place};
use super::trace::{LookupOutcome, Trace};
use crate::config::Config;
use crate::control::SessionStores;
use crate::packet::{destination, has_session, is_expiring, rewrite, tuple};
use crate::session_direction::{Marks, SessionDirection};
use crate::sessions::{Query, Sessions, key, table_of, tick};
use crate::shared::Shared;

/// Sessions that one packet goes through, one after the other: an answer to a shared address is one to a virtual address, too.
const MOST_SESSIONS: usize = 2;

/// The code of all nodes.
pub struct Translate<const NODE: usize> {
    pub(crate) shared: Arc<Shared>,
}

impl<const NODE: usize> Counts for Translate<NODE> {
    type Error = Error;
}

/// What becomes of a packet.
pub(super) type Disposition<const NODE: usize> = Result<Next<NODE>, Error>;

impl<const NODE: usize> Translate<NODE> {
    pub(super) const IS_IP6: bool = is_ip6(NODE);
    pub(super) const PLACE: Place = place(NODE);

    #[inline(always)]
    pub(super) fn front(pkt: &Packet<'_>) -> usize {
        if matches!(Self::PLACE, Place::Output) { front::<true>(pkt) } else { 0 }
    }

    /// The forwarding table the packet came by.
    #[inline(always)]
    pub(super) fn table(&self, pkt: &Packet<'_>) -> u32 {
        let of_interface = || {
            let all = &self.shared.interfaces;
            if Self::IS_IP6 { all.ip6_table(pkt.rx()) } else { all.ip4_table(pkt.rx()) }
        };
        match Self::PLACE {
            Place::Output => of_interface(),
            _ => pkt.meta().fib().map_or_else(of_interface, |fib| fib.0),
        }
    }

    pub(super) fn trace(
        (flow, found, to): (&Flow, LookupOutcome, Option<&SessionDirection>),
        table: u32,
        pkt: &Packet<'_>,
        cx: &Cx<'_, Self>,
    ) {
        let (from, protocol, to) = (tuple(flow), flow.protocol.0, to.map(SessionDirection::to));
        cx.trace(pkt, || Trace { found, is_ip6: Self::IS_IP6, protocol, from, to, table });
    }

    /// A packet that stays as it is.
    #[inline(always)]
    pub(super) fn leave(pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Disposition<NODE> {
        match Self::PLACE {
            Place::Input | Place::Output => Ok(Next::feature(cx.next_feature(pkt))),
            Place::Vip => Err(Error::NoTranslation),
            Place::Shared => Err(Error::UnknownSession),
        }
    }

    /// To the thread that has the packet's session.
    pub(super) fn hand_over(thread: usize, pkt: &mut Packet<'_>) -> Disposition<NODE> {
        *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32, next: 0 };
        Ok(Next::HANDOFF)
    }

    /// A packet that was translated goes on.
    fn go_on(config: &Config, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Disposition<NODE> {
        let all = match Self::PLACE {
            Place::Input | Place::Output => return Ok(Next::feature(cx.next_feature(pkt))),
            Place::Vip => &config.clients,
            Place::Shared => &config.snat_addresses,
        };
        // What would come back here again and again is dropped.
        let dst = destination(Self::IS_IP6, pkt.data()).ok_or(Error::Malformed)?;
        if all.get(&(Self::IS_IP6, dst)).is_some() { Err(Error::Loop) } else { Ok(Next::LOOKUP) }
    }

    /// Whether a packet is translated here, or where it goes out, or not at all.
    #[inline(always)]
    fn is_for_here(flow: &Flow, way: &SessionDirection) -> bool {
        let to = way.to();
        match Self::PLACE {
            _ if way.marks.has(Marks::BYPASS) => false,
            // It has been routed.
            Place::Output => {
                !way.marks.has(Marks::NO_NAT) && (to.dst, to.dport) == (flow.dst, flow.dport)
                    || (flow.kind == Kind::Query && to.dst == flow.dst)
            }
            _ => way.marks.has(Marks::RETURN) || !way.marks.has(Marks::SOURCE),
        }
    }

    /// A packet whose session is known.
    #[inline(always)]
    pub(super) fn follow(
        &self,
        config: &Config,
        sessions: &mut Sessions,
        (mut flow, mut handle, found): (Flow, Handle, LookupOutcome),
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Disposition<NODE> {
        let (front, mut table) = (Self::front(pkt), self.table(pkt));
        for n in 0..MOST_SESSIONS {
            let Some(way) = sessions.way(handle) else { break };
            // RFC 5508, 4: errors neither keep sessions nor move them.
            if flow.kind != Kind::Error {
                if let Some(table) = sessions.table() {
                    table.touch(handle, tick(cx.now()));
                }
                if flow.kind == Kind::Tcp && way.state.is_moved_by(flow.flags) {
                    sessions.tcp(handle, flow.flags, cx.now());
                }
            }
            if !Self::is_for_here(&flow, &way) {
                Self::trace((&flow, found, None), table, pkt, cx);
                break;
            }
            if Self::PLACE != Place::Output && n == 0 && is_expiring(Self::IS_IP6, pkt) {
                return Ok(Self::expired(pkt));
            }
            Self::trace((&flow, found, Some(&way)), table, pkt, cx);
            self.count(config, &way, pkt, cx);
            if way.marks.has(Marks::NO_NAT) {
                pkt.meta_mut().adj = self.shared.way_to(Self::IS_IP6, table, way.to().dst, cx.guard()).0;
                return Ok(Next::BALANCE);
            }
            rewrite(Self::IS_IP6, pkt, front, &flow, &way).map_err(|_| Error::Malformed)?;
            if way.marks.has(Marks::OTHER_TABLE)
                && Self::PLACE != Place::Output
                && let Some(key) = sessions.peer_key(way.peer)
            {
                table = table_of(&key).0;
                pkt.meta_mut().set_fib(Some(FibIndex(table)));
            }
            // Only what comes back to a shared address may be an answer of a back end.
            if !(way.marks.has(Marks::RETURN) && way.marks.has(Marks::SOURCE)) {
                break;
            }
            flow = self.shared.flow(Self::IS_IP6, pkt, front).map_err(|_| Error::Malformed)?;
            let next = key(tuple(&flow), flow.protocol.0, Self::IS_IP6, table);
            match sessions.find(next) {
                Some(next) if n + 1 < MOST_SESSIONS => handle = next,
                _ => break,
            }
        }
        Self::go_on(config, pkt, cx)
    }

    fn expired(pkt: &mut Packet<'_>) -> Next<NODE> {
        if Self::IS_IP6 {
            shoal_ip6::IcmpError::HOP_LIMIT.ask(pkt);
        } else {
            shoal_ip4::IcmpError::TTL.ask(pkt);
        }
        Next::ICMP_ERROR
    }

    #[inline(always)]
    pub(super) fn count(&self, config: &Config, way: &SessionDirection, pkt: &Packet<'_>, cx: &Cx<'_, Self>) {
        let goes_there = way.marks.has(Marks::DESTINATION) && !way.marks.has(Marks::RETURN);
        if goes_there && config.translation(way.translation).is_some_and(|of| of.serial == way.serial) {
            let bytes = pkt.len().saturating_sub(Self::front(pkt));
            self.shared.translated.add(cx.thread(), way.translation as usize, 1, bytes as u64);
        }
    }
}

impl<const NODE: usize> StatefulStagedNode for Translate<NODE> {
    const NAME: &'static str = names(NODE).0;
    type Feature = SessionStores;
    type Next = Next<NODE>;
    type Trace = Trace;
    type Key = Query;

    #[inline(always)]
    fn prepare(&self, sessions: &mut Sessions, pkt: &Packet<'_>, _: &mut Cx<'_, Self>) -> Query {
        match self.shared.flow(Self::IS_IP6, pkt, Self::front(pkt)) {
            Ok(flow) if has_session(&flow) => {
                sessions.search(key(tuple(&flow), flow.protocol.0, Self::IS_IP6, self.table(pkt)))
            }
            _ => Search::default(),
        }
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
    ) -> Disposition<NODE> {
        let config = self.shared.config.load(cx.guard());
        let Ok(flow) = self.shared.flow(Self::IS_IP6, pkt, Self::front(pkt)) else {
            // No session's; whether it goes on is for others to say.
            cx.count(Error::Malformed, 1);
            return Self::leave(pkt, cx);
        };
        if !has_session(&flow) {
            return Self::leave(pkt, cx);
        }
        let found = sessions.table().and_then(|table| table.find(&search)).map(|flow| flow.handle());
        match found {
            Some(handle) => self.follow(config, sessions, (flow, handle, LookupOutcome::Existing), pkt, cx),
            None => self.begin(config, sessions, (flow, self.table(pkt)), pkt, cx),
        }
    }
}
