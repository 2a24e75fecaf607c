//! Packets of established sessions on a fused path.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_flow::{Handle, TableId};
use shoal_graph::Cx;
use shoal_graph::superpath::{FlowOptional, Pass, StatefulOptional, WithState};
use shoal_infra::Guard;
use shoal_nat::Sum;

use super::begin::Before;
use super::place::{Place, names};
use super::translate::Translate;
use crate::config::{self, Config};
use crate::control::SessionStores;
use crate::packet::PortPacket;
use crate::policy::PolicyKind;
use crate::session_direction::{Marks, SessionDirection, Tuple};
use crate::sessions::{Query, Sessions, key, table_number, tick};

/// The features' common cases, for chains.
pub struct CnatStages {
    /// IPv4 that comes in.
    pub input4: Arc<WithState<Translate<0>>>,
    /// IPv6 that comes in.
    pub input6: Arc<WithState<Translate<1>>>,
    /// IPv4 that goes out.
    pub output4: Arc<WithState<Translate<2>>>,
    /// IPv6 that goes out.
    pub output6: Arc<WithState<Translate<3>>>,
}

/// Sessions that stay in a processor's own cache.
const NEAR: usize = 512;

/// Whole packets of TCP and UDP that have a session, or whose answers have one; the node sees to the others.
impl<const NODE: usize> StatefulOptional for Translate<NODE> {
    const NAME: &'static str = names(NODE).0;
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
        match Self::PLACE {
            Place::Output => self.go_out(sessions, config, pkt, cx),
            _ => FlowOptional::follow(self, sessions, config, None, pkt, cx),
        }
    }
}

impl<const NODE: usize> FlowOptional for Translate<NODE> {
    type Query = Query;

    fn table(&self, interface: SwIfIndex) -> u32 {
        let all = &self.shared.interfaces;
        if Self::IS_IP6 { all.ip6_table(interface) } else { all.ip4_table(interface) }
    }

    fn is_far(sessions: &Sessions) -> bool {
        sessions.len() > NEAR
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Query {
        let Some(bytes) = pkt.data().get(offset..) else { return Query::default() };
        PortPacket::read(Self::IS_IP6, bytes)
            .map_or_else(Query::default, |seen| Query::of(key(seen.tuple, seen.protocol(), Self::IS_IP6, 0)))
    }

    #[inline(always)]
    fn begin(sessions: &mut Sessions, table: u32, query: &mut Query) {
        let table = TableId::new(table_number(Self::IS_IP6, table)).unwrap_or_default();
        *query = sessions.search(query.key().in_table(table));
    }

    #[inline(always)]
    fn seek(sessions: &mut Sessions, query: &mut Query) {
        sessions.seek_one(query);
    }

    /// A packet that comes in.
    #[inline(always)]
    fn follow(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        query: Option<&Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let Some(seen) = PortPacket::read(Self::IS_IP6, pkt.data()) else { return Pass::Leave };
        let table = self.table(pkt);
        let Some((handle, way)) = Self::find_session(sessions, query, (&seen, table), cx) else {
            return Self::without_session(sessions, config, &seen, cx);
        };
        let marks = way.marks;
        let stays = marks.has(Marks::BYPASS) || (marks.has(Marks::SOURCE) && !marks.has(Marks::RETURN));
        if !stays {
            if seen.hops <= 1 || marks.has(Marks::NO_NAT | Marks::OTHER_TABLE) {
                return Pass::Leave;
            }
            // An answer to a shared address may be one of a back end, too.
            if marks.has(Marks::RETURN) && marks.has(Marks::SOURCE) {
                let next = key(way.to(), seen.protocol(), Self::IS_IP6, table);
                if sessions.find(next).is_some() {
                    return Pass::Leave;
                }
            }
        }
        moved(sessions, (&way, handle), &seen, cx);
        if stays {
            return Pass::On;
        }
        if Self::write(&way, pkt, 0, &seen).is_none() {
            return Pass::Leave;
        }
        self.count(config, &way, pkt, cx);
        if way.to().dst == seen.tuple.dst { Pass::On } else { Pass::Redirected }
    }
}

impl<const NODE: usize> Translate<NODE> {
    /// The session of a packet, which is touched: the node would do the same.
    #[inline(always)]
    fn find_session(
        sessions: &mut Sessions,
        query: Option<&Query>,
        (seen, table): (&PortPacket, u32),
        cx: &Cx<'_, Self>,
    ) -> Option<(Handle, SessionDirection)> {
        let key = key(seen.tuple, seen.protocol(), Self::IS_IP6, table);
        let mut flow = sessions.table()?.find_by(query, key)?;
        let now = tick(cx.now());
        if !flow.is_touched(now) {
            flow.touch(now);
        }
        Some((flow.handle(), *flow.value()))
    }

    /// What becomes of a packet that no session is for: it passes if none would begin, here or on another thread.
    #[inline(never)]
    fn without_session(sessions: &Sessions, config: &Config, seen: &PortPacket, cx: &Cx<'_, Self>) -> Pass {
        let Tuple { dst: address, dport: port, .. } = seen.tuple;
        let (is_ip6, protocol) = (Self::IS_IP6, seen.protocol());
        let passes = sessions.is_open()
            && config.policy.kind == PolicyKind::None
            && config.owner(is_ip6, protocol, seen.tuple) == cx.thread()
            && (Self::PLACE == Place::Output
                || config.find(&config::Place { is_ip6, address, port, protocol }).is_none());
        if passes { Pass::On } else { Pass::Leave }
    }

    #[inline(always)]
    fn write(way: &SessionDirection, pkt: &mut Packet<'_>, front: usize, seen: &PortPacket) -> Option<()> {
        let sum = Sum::of(pkt);
        let bytes = pkt.data_mut().get_mut(front..)?;
        if Self::IS_IP6 {
            way.rewrite6().write(bytes, seen.is_tcp, sum)
        } else {
            way.rewrite().write_port_packet(bytes, seen.is_tcp, sum)
        }
    }

    /// A packet that goes out.
    #[inline(always)]
    fn go_out(
        &self,
        sessions: &mut Sessions,
        config: &Config,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass {
        let front = Self::front(pkt);
        let Some(seen) = pkt.data().get(front..).and_then(|bytes| PortPacket::read(Self::IS_IP6, bytes))
        else {
            return Pass::Leave;
        };
        let table = self.table(pkt);
        // Without shared sources, what was translated where it came in has no session of its own here: its answers have one.
        if !sessions.has_shared()
            && let Some(pass) = self.of_answers(sessions, config, (&seen, table), pkt)
        {
            return pass;
        }
        let Some((handle, way)) = Self::find_session(sessions, None, (&seen, table), cx) else {
            let pass = self.of_answers(sessions, config, (&seen, table), pkt);
            return pass.unwrap_or_else(|| Self::without_session(sessions, config, &seen, cx));
        };
        let (to, marks) = (way.to(), way.marks);
        let is_here = (to.dst, to.dport) == (seen.tuple.dst, seen.tuple.dport)
            && !marks.has(Marks::BYPASS | Marks::NO_NAT);
        if is_here && marks.has(Marks::RETURN) {
            return Pass::Leave;
        }
        moved(sessions, (&way, handle), &seen, cx);
        if is_here {
            if Self::write(&way, pkt, front, &seen).is_none() {
                return Pass::Leave;
            }
            self.count(config, &way, pkt, cx);
        }
        Pass::On
    }

    /// What becomes of a packet on its way out that has no session of its own, by the session of its answers; `None`: there is none.
    #[inline(always)]
    fn of_answers(
        &self,
        sessions: &Sessions,
        config: &Config,
        (seen, table): (&PortPacket, u32),
        pkt: &Packet<'_>,
    ) -> Option<Pass> {
        match self.before(sessions, (seen.tuple, seen.protocol()), table, pkt) {
            Before::Nothing | Before::Passes => None,
            Before::Settled => Some(Pass::On),
            Before::Translated if config.policy.kind == PolicyKind::None => Some(Pass::On),
            Before::Translated => Some(Pass::Leave),
        }
    }
}

/// A segment may move the state of its connection.
#[inline(always)]
fn moved<const NODE: usize>(
    sessions: &mut Sessions,
    (way, handle): (&SessionDirection, Handle),
    seen: &PortPacket,
    cx: &Cx<'_, Translate<NODE>>,
) {
    if seen.is_tcp && way.state.is_moved_by(seen.flags) {
        sessions.tcp(handle, seen.flags, cx.now());
    }
}
