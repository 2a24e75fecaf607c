//! Packets to addresses that hosts share.

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_fib::FibIndex;
use shoal_graph::{Counts, Cx, NextNodes, StatefulNode, Ticket};
use shoal_ip4::IcmpError;
use shoal_wire::Ip4Header;

use super::{Asked, Error, Next, Trace};
use crate::session_stores::SessionStores;
use crate::sessions::{Direction, Sessions};
use crate::shared::Shared;

/// The code of both nodes: towards hosts from outside, and from another host.
pub struct Out2in<const HAIRPIN: bool> {
    pub(crate) shared: Arc<Shared>,
}

impl<const HAIRPIN: bool> Out2in<HAIRPIN> {
    fn one(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<(Next, i64), Error> {
        let config = self.shared.config.load(cx.guard());
        let ip4 = pkt.header::<Ip4Header>().copied().ok_or(Error::Malformed)?;
        let Some(map) = config.of_shared(ip4.dst()) else {
            // A hairpin's destination was shared when it was sent here.
            if HAIRPIN {
                return Err(Error::NoTranslation);
            }
            return Ok((Next::Feature(cx.next_feature(pkt)), -1));
        };
        let asked = Asked::read(&self.shared, pkt)?;
        let (shared, port) = asked.tuple.destination();
        let host = map.reverse(shared, port).ok_or(Error::NoTranslation)?;
        let thread = config.worker(host);
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return Ok((if HAIRPIN { Next::HairpinHandoff } else { Next::OutHandoff }, -1));
        }
        if ip4.ttl() <= 1 {
            IcmpError::TTL.ask(pkt);
            return Ok((Next::IcmpError, -1));
        }
        let remote = asked.remote(Direction::Out2in);
        let flow = if asked.quoted.is_some() {
            sessions.peek(Direction::Out2in, (shared, port), remote, asked.protocol)
        } else {
            let (count, of_packet) = (sessions.len(), (remote, asked.protocol, asked.seen.flags));
            let flow = sessions.used(Direction::Out2in, (shared, port), of_packet, cx.now());
            if sessions.len() != count {
                self.shared.set_count(cx.thread(), sessions.len());
            }
            flow
        };
        let flow = flow.ok_or(Error::NoTranslation)?;
        asked.translate(pkt, Direction::Out2in, &flow)?;
        pkt.meta_mut().set_fib(Some(FibIndex(config.inside_table)));
        cx.count(Error::Out2in, 1);
        Ok((Next::Lookup, flow.shared.1.into()))
    }
}

impl<const HAIRPIN: bool> Counts for Out2in<HAIRPIN> {
    type Error = Error;
}

impl<const HAIRPIN: bool> StatefulNode for Out2in<HAIRPIN> {
    const NAME: &'static str = if HAIRPIN { "det44-hairpinning" } else { "det44-out2in" };
    type Feature = SessionStores;
    type Next = Next;
    type Trace = Trace;

    fn packet(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let interface = pkt.rx().0;
        let done = self.one(sessions, pkt, cx);
        let (next, session) = done.map_or((0, -1), |(next, session)| (next.edge().0, session));
        let way = if HAIRPIN { "DET44_HAIRPINNING" } else { "DET44_OUT2IN" };
        cx.trace(pkt, || Trace { way, interface, next, session });
        done.map(|(next, _)| next)
    }
}
