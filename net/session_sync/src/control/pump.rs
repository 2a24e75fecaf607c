//! What is due: hellos, data that was not acknowledged, events of threads, all sessions.

use std::sync::atomic::Ordering;

use shoal_graph::clock::Time;
use shoal_nat_state::sync::{Misfit, Op, Role, SyncedFeature};

use super::{REFUSED, SessionSync};
use crate::wire::{Kind, ROOM, RecordOp, write_record};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Datagrams sent in one go, and the time to the next go: packets wait meanwhile.
const BURST: usize = 16;
const PACE: u64 = 500_000;
/// Events taken of a thread in one go.
const EVENTS: usize = 64;
/// Datagrams sent again in one go.
const AGAIN: usize = 16;
/// Threads look at new sessions, and walk on, so often.
const LOOK: u64 = 20_000_000;
/// All sessions of a kind of NAT are not reported again before so long, but to a router that is new.
const BETWEEN_ALL: u64 = 5 * SECOND;

impl SessionSync {
    /// Does what is due; when to come again.
    pub(crate) fn tick(&self) -> Option<Time> {
        let now = self.now();
        if !self.state.borrow().association.is_up() {
            // Nothing is taken of threads, and whatever rings is done now.
            self.bell.answer();
        }
        self.peer()?;
        self.look_whether_silent(now);
        if now >= self.state.borrow().next_hello {
            let hello = u64::from(self.timers().hello) * 1_000_000;
            self.state.borrow_mut().next_hello = Time(now.0 + hello);
            self.say_hello(None);
        }
        let mut due = Vec::new();
        if self.state.borrow().association.is_up() {
            self.send_again(now);
            self.deliver(now);
            if self.pump(now) {
                due.push(Time(now.0 + PACE));
            }
            self.acknowledge();
            let state = self.state.borrow();
            due.extend(state.send.due());
            if state.role == Role::Active {
                due.push(Time(now.0 + LOOK));
            }
        }
        if now >= self.state.borrow().next_second {
            self.state.borrow_mut().next_second = Time(now.0 + SECOND);
            self.each_second(now);
        }
        let state = self.state.borrow();
        let least = Time(now.0 + PACE);
        let all = due.into_iter().chain([state.next_hello, state.next_second]);
        all.min().map(|at| at.max(least))
    }

    fn look_whether_silent(&self, now: Time) {
        let state = self.state.borrow();
        let dead = u64::from(state.timers.dead) * 1_000_000;
        let is_silent =
            state.association.is_up() && now.0.saturating_sub(state.association.heard().0) >= dead;
        drop(state);
        if is_silent {
            self.go_down("the other router is silent");
        }
    }

    fn send_again(&self, now: Time) {
        let again = self.state.borrow_mut().send.again(now, AGAIN);
        for (sequence, records) in again {
            self.counters.again.add(0, 0, 1);
            self.send(&self.header(Kind::Data, sequence), &records);
        }
    }

    /// Sends what threads have told; whether there is more to be done soon.
    fn pump(&self, now: Time) -> bool {
        if now < self.state.borrow().next_send {
            return true;
        }
        // What is told from here on rings again.
        self.bell.answer();
        let refresh = self.timers().refresh;
        let (mut sent, mut more) = (0, false);
        for (at, feature) in self.features.iter().enumerate() {
            self.begin_all(at, &**feature, now);
            more |= feature.work(refresh, now);
            sent += self.take_events(&**feature, BURST.saturating_sub(sent), now);
            more |= feature.waits();
        }
        self.seal(now);
        // Whatever rings until then waits, so that what threads answer does not keep this one busy.
        self.state.borrow_mut().next_send = Time(now.0 + PACE);
        more
    }

    /// Begins to tell of all sessions of a kind of NAT, if it is time.
    fn begin_all(&self, at: usize, feature: &dyn SyncedFeature, now: Time) {
        let lost = feature.take_lost();
        for (counter, count) in [(&self.counters.lost, lost.ends), (&self.counters.late, lost.late)] {
            if count > 0 {
                counter.add(0, 0, count);
            }
        }
        let mut state = self.state.borrow_mut();
        let is_active = state.role == Role::Active;
        let Some(of) = state.features.get_mut(at) else { return };
        of.tells_all |= lost.ends > 0 || lost.has_other_workers;
        let is_time = of.told_at.is_none_or(|told| now.0.saturating_sub(told.0) >= BETWEEN_ALL);
        if !(of.tells_all && is_active && is_time && feature.is_on()) {
            return;
        }
        (of.tells_all, of.told_at) = (false, Some(now));
        drop(state);
        self.counters.all_told.add(0, 0, 1);
        self.record(feature.number(), RecordOp::BeginAll, &[], now);
        feature.tell_all();
    }

    /// Takes events of threads for up to so many datagrams; how many were sent.
    fn take_events(&self, feature: &dyn SyncedFeature, most: usize, now: Time) -> usize {
        let mut sent = 0;
        while sent < most && !self.state.borrow().send.is_full() {
            let mut taken = 0;
            let is_over = feature.take(EVENTS, &mut |op, session| {
                taken += 1;
                let (counter, op) = match op {
                    Op::Put => (&self.counters.puts_sent, RecordOp::Put),
                    Op::Gone => (&self.counters.ends_sent, RecordOp::Gone),
                };
                counter.add(0, 0, 1);
                sent += self.record(feature.number(), op, session, now);
            });
            if is_over {
                sent += self.record(feature.number(), RecordOp::EndAll, &[], now);
            } else if taken < EVENTS {
                break;
            }
        }
        sent
    }

    /// One more record; how many datagrams were sent.
    fn record(&self, number: u8, op: RecordOp, session: &[u8], now: Time) -> usize {
        let is_full = self.state.borrow().out.len() + 2 + session.len() > ROOM;
        let sent = if is_full { self.seal(now) } else { 0 };
        write_record(number, op, session, &mut self.state.borrow_mut().out);
        sent
    }

    /// Sends the records that wait; how many datagrams that were.
    fn seal(&self, now: Time) -> usize {
        let mut state = self.state.borrow_mut();
        if state.out.is_empty() {
            return 0;
        }
        let records = std::mem::take(&mut state.out);
        let sequence = state.send.push(records.clone(), now);
        drop(state);
        self.send(&self.header(Kind::Data, sequence), &records);
        1
    }

    /// Asks the other router for all sessions of a kind of NAT.
    pub(super) fn ask_for_all(&self, number: u8) {
        self.record(number, RecordOp::WantAll, &[], self.now());
        self.bell.ring();
    }

    fn each_second(&self, now: Time) {
        self.renew_role();
        let is_up = self.state.borrow().association.is_up();
        for (at, feature) in self.features.iter().enumerate() {
            self.counters.take_over(at, &**feature);
            let refused = feature.take_refused();
            let mut state = self.state.borrow_mut();
            for one in refused {
                if state.refused.len() == REFUSED {
                    state.refused.pop_front();
                }
                state.refused.push_back(format!("{} {one}", feature.name()));
            }
            let is_standby = state.role == Role::Standby;
            let Some(of) = state.features.get_mut(at) else { continue };
            let is_on = feature.is_on();
            let was_on = std::mem::replace(&mut of.was_on, is_on);
            let came = is_on && !was_on;
            of.tells_all |= came;
            let taken =
                feature.counts().refused.get(Misfit::Taken.number()).map_or(0, |n| n.load(Ordering::Relaxed));
            // A session of this router's own was in the way of one. It has gone when the other router has named all.
            let was_taken = taken > std::mem::replace(&mut of.taken, taken);
            let is_time = of.asked_at.is_none_or(|asked| now.0.saturating_sub(asked.0) >= BETWEEN_ALL);
            let asks = is_up && is_standby && is_time && is_on && (came || was_taken);
            if asks {
                of.asked_at = Some(now);
            } else if was_taken && is_standby {
                // It is asked for later.
                of.taken = taken.saturating_sub(1);
            }
            drop(state);
            if asks {
                self.ask_for_all(feature.number());
            }
        }
    }
}
