//! `nat44-ed-in2out-slowpath` and its like: packets that belong to no session yet.
//! nat44-ed-in2out -> **nat44-ed-in2out-slowpath** -> where nat44-ed-in2out was sending them | ip4-icmp-error

use std::sync::Arc;

use shoal_buffer::{Buffer, Frame, SwIfIndex};
use shoal_derive::NextNodes;
use shoal_graph::{ErrorCounters, FrameCx, NextNodes, NodeIndex, StatefulFrameNode};
use shoal_ip4::IcmpError;
use shoal_nat::{Kind, ParsedPacket};
use shoal_nat44::counters::PathCounters;
use shoal_nat44::session_events::Exhausted;

use super::fast::{OUT2IN, OUTPUT};
use super::trace::SlowTrace;
use crate::config::Config;
use crate::control::SessionStores;
use crate::decide::{Asked, DropReason, Verdict};
use crate::error::{In2outError, Out2inError};
use crate::packet::{Ticket, clamp, front, key_of, look_up_in, rewrite, seen, table};
use crate::session_direction::Marks;
use crate::sessions::{Sessions, tick, tuple_of};
use crate::shared::Shared;
use crate::show::Flow;

/// Where a packet may go that has come as far as it may.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
}

/// The reasons of a direction.
pub trait Reasons: ErrorCounters + Send + Sync {
    /// Of a decision.
    fn of(why: DropReason) -> Self;
}

impl Reasons for In2outError {
    fn of(why: DropReason) -> Self {
        match why {
            DropReason::OutOfPorts => In2outError::OutOfPorts,
            DropReason::IcmpType => In2outError::BadIcmpType,
            DropReason::MaxSessions => In2outError::MaxSessions,
            DropReason::NonSyn => In2outError::NonSyn,
            DropReason::CannotTranslate => In2outError::CannotTranslate,
            DropReason::NoTranslation => In2outError::NoTranslation,
            DropReason::Standby => In2outError::Standby,
        }
    }
}

impl Reasons for Out2inError {
    fn of(why: DropReason) -> Self {
        match why {
            DropReason::OutOfPorts => Out2inError::OutOfPorts,
            DropReason::IcmpType => Out2inError::BadIcmpType,
            DropReason::MaxSessions => Out2inError::MaxSessions,
            DropReason::NonSyn => Out2inError::NonSyn,
            DropReason::CannotTranslate => Out2inError::CannotTranslate,
            DropReason::NoTranslation => Out2inError::NoTranslation,
            DropReason::Standby => Out2inError::Standby,
        }
    }
}

/// The code of all three nodes.
pub struct Slow<const WAY: u8, E> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reasons: std::marker::PhantomData<fn(E)>,
}

/// What became of a packet.
pub(super) enum Disposition {
    /// It goes on, translated or not.
    On {
        /// Whether it was translated.
        translated: bool,
    },
    /// Its sender gets an error that it came too far.
    Expired,
}

impl<const WAY: u8, E: Reasons + 'static> Slow<WAY, E> {
    fn counters(&self) -> &PathCounters {
        let [in2out, out2in] = &self.shared.counters.slow;
        if WAY == OUT2IN { out2in } else { in2out }
    }

    const TRACE: &'static str =
        if WAY == OUT2IN { "NAT44_OUT2IN_ED_SLOW_PATH" } else { "NAT44_IN2OUT_ED_SLOW_PATH" };

    fn one(&self, mut buffer: Buffer, sessions: &mut Sessions, config: &Config, cx: &mut FrameCx<'_>) {
        let pkt = cx.cache().packet(&mut buffer);
        let interface = if WAY == OUTPUT { pkt.tx() } else { pkt.rx() };
        let front = if WAY == OUTPUT { front::<true>(&pkt) } else { front::<false>(&pkt) };
        let seen = seen(self.shared.words, &pkt, front);
        let next = *cx.cache().packet(&mut buffer).scratch::<Ticket>();
        let done = match seen {
            Some(seen) => self.judge(&mut buffer, (seen, front), sessions, config, cx),
            None => Err(DropReason::CannotTranslate),
        };
        match done {
            Ok(Disposition::On { translated }) => {
                if let Some(seen) = seen.filter(|_| translated) {
                    self.counters().add(seen.kind, cx.thread(), interface);
                }
                cx.send_to(NodeIndex::from_number(next.next), buffer);
            }
            Ok(Disposition::Expired) => {
                IcmpError::TTL.ask(&mut cx.cache().packet(&mut buffer));
                cx.send(Next::IcmpError.edge(), buffer);
            }
            Err(why) => {
                self.counters().drop(cx.thread(), interface);
                self.tell(why, config, cx);
                cx.drop(buffer, E::of(why));
            }
        }
    }

    /// Collectors hear what there was not enough of.
    fn tell(&self, why: DropReason, config: &Config, cx: &FrameCx<'_>) {
        let what = match why {
            DropReason::OutOfPorts => Exhausted::Ports,
            DropReason::MaxSessions => Exhausted::Sessions { most: config.sessions },
            _ => return,
        };
        self.shared.news.exhausted(what, cx.now());
    }

    fn judge(
        &self,
        buffer: &mut Buffer,
        (seen, front): (ParsedPacket, usize),
        sessions: &mut Sessions,
        config: &Config,
        cx: &mut FrameCx<'_>,
    ) -> Result<Disposition, DropReason> {
        let mut pkt = cx.cache().packet(buffer);
        let shared = &*self.shared;
        let table = if WAY == OUTPUT {
            table::<true>(&shared.interfaces, &pkt)
        } else {
            table::<false>(&shared.interfaces, &pkt)
        };
        let tx = pkt.tx();
        let asked = Asked {
            config,
            shared,
            guard: cx.guard(),
            now: cx.now(),
            thread: cx.thread(),
            rx: pkt.rx(),
            table,
            output: (WAY == OUTPUT).then(|| (tx, shared.interfaces.ip4_table(tx))),
            seen,
        };
        if seen.kind == Kind::Error {
            let translated = asked.icmp_error(sessions, &mut pkt, front, WAY)?;
            return Ok(Disposition::On { translated });
        }
        let handle = match Self::session(&asked, sessions) {
            Verdict::Session(handle) => handle,
            Verdict::Pass => return Ok(Disposition::On { translated: false }),
            Verdict::Drop(why) => return Err(why),
        };
        if WAY != OUTPUT && pkt.data().get(8).is_some_and(|ttl| *ttl <= 1) {
            return Ok(Disposition::Expired);
        }
        let (key, peer) = {
            let table = sessions.table().ok_or(DropReason::NoTranslation)?;
            table.touch(handle, tick(cx.now()));
            let key = *table.key(handle).ok_or(DropReason::NoTranslation)?;
            let way = table.get_mut(handle).ok_or(DropReason::NoTranslation)?;
            rewrite(way, &seen, &mut pkt, front).ok_or(DropReason::CannotTranslate)?;
            (key, way.peer)
        };
        let Some(way) = sessions.way(handle) else { return Err(DropReason::NoTranslation) };
        if seen.kind == Kind::Tcp {
            clamp(config.mss, &seen, &mut pkt, front);
            sessions.tcp(handle, seen.flags, cx.now());
        }
        let other = sessions.peer_key(peer).map_or(table, |key| key.table().number());
        if way.marks.has(Marks::OTHER_TABLE) {
            look_up_in(&mut pkt, other);
        }
        if way.marks.has(Marks::HAIRPIN) {
            shared.counters.hairpinning.add(cx.thread(), asked.rx.0 as usize, 1);
        }
        Self::trace(&pkt, (tuple_of(&key), way.to()), (seen.protocol, table, other), cx);
        Ok(Disposition::On { translated: true })
    }

    /// The packet's session: one that a packet before it has made, or one that is made now.
    fn session(asked: &Asked<'_>, sessions: &mut Sessions) -> Verdict {
        let there = key_of(&asked.seen, asked.table).and_then(|key| sessions.find(key));
        if let Some(handle) = there {
            let marks = sessions.way(handle).map_or(Marks::default(), |way| way.marks);
            if WAY != OUTPUT && marks.waits_for_output() {
                return Verdict::Pass;
            }
            let ends = WAY == OUTPUT && marks.passes_in();
            if !ends && !sessions.is_timed_out(handle, &asked.config.timeouts, tick(asked.now)) {
                return Verdict::Session(handle);
            }
            sessions.remove(handle);
        }
        if WAY == OUT2IN { asked.out2in(sessions) } else { asked.in2out(sessions) }
    }

    fn trace(
        pkt: &shoal_buffer::Packet<'_>,
        (from, to): (shoal_nat::Tuple, shoal_nat::Tuple),
        (protocol, table, to_table): (u8, u32, u32),
        cx: &FrameCx<'_>,
    ) {
        let SwIfIndex(interface) = if WAY == OUTPUT { pkt.tx() } else { pkt.rx() };
        cx.trace(pkt, || SlowTrace {
            name: Self::TRACE,
            interface,
            result: "success",
            flow: Flow { from, to, protocol, table, to_table },
        });
    }
}

impl<const WAY: u8, E: Reasons + 'static> StatefulFrameNode for Slow<WAY, E> {
    const NAME: &'static str = match WAY {
        OUT2IN => "nat44-ed-out2in-slowpath",
        OUTPUT => "nat44-ed-in2out-output-slowpath",
        _ => "nat44-ed-in2out-slowpath",
    };
    type Feature = SessionStores;
    type Next = Next;
    type Error = E;

    fn frame(&self, sessions: &mut Sessions, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        sessions.set_listed(self.shared.news.are_wanted());
        frame.drain().for_each(|buffer| self.one(buffer, sessions, config, cx));
        self.shared.pass_on(sessions);
        self.shared.counters.set_sessions(cx.thread(), sessions.len());
    }
}
