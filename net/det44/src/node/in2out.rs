//! Packets of hosts.

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_fib::FibIndex;
use shoal_graph::{Counts, Cx, NextNodes, StatefulNode, Ticket};
use shoal_ip4::IcmpError;
use shoal_wire::Ip4Header;

use super::{Asked, Error, Next, Trace};
use crate::config::Config;
use crate::session_stores::SessionStores;
use crate::sessions::{Direction, Flow, Refusal, Sessions};
use crate::shared::Shared;

/// The node.
pub struct In2out {
    pub(crate) shared: Arc<Shared>,
}

impl In2out {
    fn session(
        &self,
        asked: &Asked,
        sessions: &mut Sessions,
        config: &Config,
        cx: &Cx<'_, Self>,
    ) -> Result<Flow, Error> {
        let (host, port) = asked.tuple.source();
        let remote = asked.remote(Direction::In2out);
        if asked.quoted.is_some() {
            return sessions
                .peek(Direction::In2out, (host, port), remote, asked.protocol)
                .ok_or(Error::NoTranslation);
        }
        let of_packet = (remote, asked.protocol, asked.seen.flags);
        if let Some(flow) = sessions.used(Direction::In2out, (host, port), of_packet, cx.now()) {
            return Ok(flow);
        }
        let map = config.of_host(host).ok_or(Error::NoTranslation)?;
        let begun = sessions.begin((host, port), (remote, asked.protocol), &map.forward(host), cx.now());
        if begun == Err(Refusal::HostFull) {
            self.shared.tell_full(host, cx.now());
        }
        begun?;
        self.shared.set_count(cx.thread(), sessions.len());
        sessions.used(Direction::In2out, (host, port), of_packet, cx.now()).ok_or(Error::NoTranslation)
    }

    fn one(
        &self,
        sessions: &mut Sessions,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<(Next, i64), Error> {
        let config = self.shared.config.load(cx.guard());
        let ip4 = pkt.header::<Ip4Header>().copied().ok_or(Error::Malformed)?;
        let hairpins = config.of_shared(ip4.dst()).is_some();
        if !hairpins && self.shared.is_own(config.inside_table, ip4.dst().to_bits(), cx.guard()) {
            return Ok((Next::Feature(cx.next_feature(pkt)), -1));
        }
        let asked = Asked::read(&self.shared, pkt)?;
        let (host, _) = asked.tuple.source();
        let thread = config.worker(host);
        if thread != cx.thread() {
            *pkt.scratch::<Ticket>() = Ticket { thread: thread as u32 };
            return Ok((Next::InHandoff, -1));
        }
        if ip4.ttl() <= 1 {
            IcmpError::TTL.ask(pkt);
            return Ok((Next::IcmpError, -1));
        }
        let flow = match self.session(&asked, sessions, config, cx) {
            Ok(flow) => flow,
            // The sender of a query gets no error.
            Err(Error::MaxSessions | Error::OutOfPorts) if asked.is_query() => return Err(Error::OutOfPorts),
            Err(why @ (Error::MaxSessions | Error::OutOfPorts)) => {
                cx.count(why, 1);
                IcmpError::HOST.ask(pkt);
                return Ok((Next::IcmpError, -1));
            }
            Err(why) => return Err(why),
        };
        asked.translate(pkt, Direction::In2out, &flow)?;
        pkt.meta_mut().set_fib(Some(FibIndex(config.outside_table)));
        cx.count(Error::In2out, 1);
        Ok((if hairpins { Next::Hairpin } else { Next::Lookup }, flow.shared.1.into()))
    }
}

impl Counts for In2out {
    type Error = Error;
}

impl StatefulNode for In2out {
    const NAME: &'static str = "det44-in2out";
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
        cx.trace(pkt, || Trace { way: "DET44_IN2OUT", interface, next, session });
        done.map(|(next, _)| next)
    }
}
