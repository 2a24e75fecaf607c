//! `nat44-ei-in2out-slowpath` and its like: packets that belong to no session yet, ICMP errors, packets between two hosts.
//! nat44-ei-in2out -> **nat44-ei-in2out-slowpath** -> where nat44-ei-in2out was sending them | ip4-icmp-error |
//! nat44-ei-hairpinning-handoff

use std::sync::Arc;

use shoal_buffer::{Buffer, Frame, Packet, SwIfIndex};
use shoal_derive::NextNodes;
use shoal_graph::{ErrorCounters, FrameCx, NextNodes, NodeIndex, StatefulFrameNode};
use shoal_ip4::IcmpError;
use shoal_nat::{Kind, ParsedPacket};
use shoal_nat44::packet::{Ticket, front, is_expiring, seen, table};
use shoal_nat44::session_events::Exhausted;

use super::Trace;
use super::asked::{Asked, Disposition};
use super::next::{HAIRPIN, OUT2IN, OUTPUT};
use crate::config::{Config, Mode};
use crate::error::Error;
use crate::session_stores::SessionStores;
use crate::sessions::Sessions;
use crate::shared::Shared;

/// Where a packet may go, beside the next feature.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender gets an error: it has come as far as it may.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// Another thread has the session of the host it goes to.
    #[node("nat44-ei-hairpinning-handoff")]
    Hairpin,
}

/// Whether VPP counts such packets before it knows what becomes of them.
fn is_counted(kind: Kind) -> bool {
    !matches!(kind, Kind::Tcp | Kind::Udp)
}

/// The code of all four nodes.
pub struct Slow<const WAY: u8, E = Error> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reasons: std::marker::PhantomData<fn(E)>,
}

impl<const WAY: u8, E: ErrorCounters + From<Error> + Send + Sync + 'static> Slow<WAY, E> {
    const TO_HOST: bool = WAY == OUT2IN || WAY == HAIRPIN;

    fn one(&self, mut buffer: Buffer, sessions: &mut Sessions, config: &Config, cx: &mut FrameCx<'_>) {
        let mut pkt = cx.cache().packet(&mut buffer);
        let interface = if WAY == OUTPUT { pkt.tx() } else { pkt.rx() };
        let front = if WAY == OUTPUT { front::<true>(&pkt) } else { front::<false>(&pkt) };
        let next = *pkt.scratch::<Ticket>();
        let Some(seen) = seen(self.shared.words, &pkt, front) else {
            self.shared.counters.path(Self::TO_HOST, true, Kind::Other).drop(cx.thread(), interface);
            return cx.drop(buffer, E::from(Error::CannotTranslate));
        };
        let done = self.judge(&mut buffer, (seen, front), sessions, config, cx);
        let path = self.shared.counters.path(Self::TO_HOST, true, seen.kind);
        let session = if let Ok(Disposition::Translated(Some(session))) = done { session.into() } else { -1 };
        Self::trace(&cx.cache().packet(&mut buffer), interface, next.next, session, cx);
        match done {
            Ok(Disposition::Passed) => {
                if is_counted(seen.kind) {
                    path.add(seen.kind, cx.thread(), interface);
                }
                cx.send_to(NodeIndex::from_number(next.next), buffer);
            }
            Ok(Disposition::Translated(_)) => {
                path.add(seen.kind, cx.thread(), interface);
                cx.send_to(NodeIndex::from_number(next.next), buffer);
            }
            Ok(Disposition::Elsewhere(thread)) => {
                path.add(seen.kind, cx.thread(), interface);
                *cx.cache().packet(&mut buffer).scratch::<Ticket>() =
                    Ticket { thread: thread as u32, next: next.next };
                cx.send(Next::Hairpin.edge(), buffer);
            }
            Ok(Disposition::Expired) => {
                IcmpError::TTL.ask(&mut cx.cache().packet(&mut buffer));
                cx.send(Next::IcmpError.edge(), buffer);
            }
            Err(why) => {
                match why {
                    Error::CannotCreateUser => self.shared.counters.limit_reached(cx.thread()),
                    Error::OutOfPorts => self.shared.news.exhausted(Exhausted::Ports, cx.now()),
                    Error::MaxSessions => {
                        let most = config.sessions;
                        self.shared.news.exhausted(Exhausted::Sessions { most }, cx.now());
                    }
                    _ => {}
                }
                if is_counted(seen.kind) {
                    path.add(seen.kind, cx.thread(), interface);
                }
                path.drop(cx.thread(), interface);
                cx.drop(buffer, E::from(why));
            }
        }
    }

    fn judge(
        &self,
        buffer: &mut Buffer,
        (seen, front): (ParsedPacket, usize),
        sessions: &mut Sessions,
        config: &Config,
        cx: &mut FrameCx<'_>,
    ) -> Result<Disposition, Error> {
        let mut pkt = cx.cache().packet(buffer);
        let shared = &*self.shared;
        let table = if WAY == OUTPUT {
            table::<true>(&shared.interfaces, &pkt)
        } else {
            table::<false>(&shared.interfaces, &pkt)
        };
        let tx = pkt.tx();
        let output = (WAY == OUTPUT).then(|| (tx, shared.interfaces.ip4_table(tx)));
        let mut asked = Asked {
            config,
            shared,
            guard: cx.guard(),
            now: cx.now(),
            thread: cx.thread(),
            table,
            output,
            front,
            seen,
        };
        if WAY == HAIRPIN {
            asked.table = config.outside.table;
            return match seen.kind {
                Kind::Error => asked.error_to_host(&mut pkt, sessions),
                _ => asked.hairpin(&mut pkt, sessions).map(|_| Disposition::Translated(None)),
            };
        }
        let known = match seen.kind {
            Kind::Error if Self::TO_HOST => return asked.error_to_host(&mut pkt, sessions),
            Kind::Error => return asked.error_from_host(&mut pkt, sessions),
            Kind::Other => return asked.stateless(&mut pkt, sessions, Self::TO_HOST),
            Kind::OtherIcmp if Self::TO_HOST => {
                return asked.unasked().then_some(Disposition::Passed).ok_or(Error::BadIcmpType);
            }
            Kind::OtherIcmp => {
                let passes = !asked.is_translated(sessions);
                return passes.then_some(Disposition::Passed).ok_or(Error::BadIcmpType);
            }
            _ if config.mode == Mode::Static => {
                return asked.stateless(&mut pkt, sessions, Self::TO_HOST);
            }
            _ if Self::TO_HOST => asked.at_host(sessions)?,
            _ => asked.of_host(sessions)?,
        };
        let Some(handle) = known else { return Ok(Disposition::Passed) };
        if WAY != OUTPUT && is_expiring(&pkt) {
            return Ok(Disposition::Expired);
        }
        asked.translate(&mut pkt, handle, sessions)
    }

    fn trace(pkt: &Packet<'_>, SwIfIndex(interface): SwIfIndex, next: u32, session: i64, cx: &FrameCx<'_>) {
        let (name, word) = match WAY {
            OUT2IN => ("NAT44_OUT2IN_SLOW_PATH", "session index"),
            HAIRPIN => ("NAT44_HAIRPIN", "session index"),
            _ => ("NAT44_IN2OUT_SLOW_PATH", "session"),
        };
        cx.trace(pkt, || Trace { name, interface, next, word, session });
    }
}

impl<const WAY: u8, E: ErrorCounters + From<Error> + Send + Sync + 'static> StatefulFrameNode
    for Slow<WAY, E>
{
    const NAME: &'static str = match WAY {
        OUT2IN => "nat44-ei-out2in-slowpath",
        OUTPUT => "nat44-ei-in2out-output-slowpath",
        HAIRPIN => "nat44-ei-hairpinning",
        _ => "nat44-ei-in2out-slowpath",
    };
    type Feature = SessionStores;
    type Next = Next;
    type Error = E;

    fn frame(&self, sessions: &mut Sessions, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        frame.drain().for_each(|buffer| self.one(buffer, sessions, config, cx));
        self.shared.count(cx.thread(), sessions);
        self.shared.pass_on(cx.thread(), sessions);
    }
}
