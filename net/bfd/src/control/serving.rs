//! Who sees to a session: the main thread, or, while it is up and stays as it is, the thread it was given to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_graph::GraphError;
use shoal_graph::clock::Time;
use shoal_graph::process::{Receiver, Sender, channel};

use super::{Bfd, Entry, Sessions, wire};
use crate::keeping::Expired;
use crate::node::ReceivedPacket;
use crate::packet::{ECHO_LEN, State};
use crate::session::{Nanos, Session, Todo};
use crate::shared::{Known, Plan};
use crate::template::Template;

/// Packets of sessions, and of strangers, that may wait for the main thread.
const OF_SESSIONS: usize = 4096;
const OF_STRANGERS: usize = 1024;
/// Sessions that nothing was heard of, which may wait. More are reported a moment later.
const EXPIRED: usize = 4096;
/// Nanoseconds between looks at whether threads see to their sessions.
const AUDIT: Nanos = 100_000_000;
/// How late a thread may be.
const OVERDUE: Nanos = 150_000_000;
/// How long the main thread sees to sessions of a thread that was late.
const KEPT: Nanos = 1_000_000_000;
/// Nanoseconds between two lists of all sessions: at least, and for each session.
const LISTS: Nanos = 10_000_000;
const LISTS_EACH: Nanos = 2_000;

/// Who sees to a session.
#[derive(Debug)]
pub(super) enum Served {
    /// The main thread, at least until then.
    Here(Nanos),
    /// Another thread, or the main one as a thread that forwards.
    There {
        /// Of the session's plan.
        version: u32,
        /// What all plans had in common then.
        plans: u32,
    },
}

/// The ends of channels that processes take.
pub(crate) struct Ends {
    pub of_sessions: Receiver<ReceivedPacket>,
    pub of_strangers: Receiver<ReceivedPacket>,
    pub expired: Receiver<Expired>,
    pub bell: Receiver<()>,
}

/// The other ends.
pub(super) struct Tellers {
    pub of_sessions: Sender<ReceivedPacket>,
    pub of_strangers: Sender<ReceivedPacket>,
    pub expired: Sender<Expired>,
    pub bell: Sender<()>,
}

/// All channels.
pub(super) fn channels() -> (Tellers, Ends) {
    let (session, of_sessions) = channel(OF_SESSIONS);
    let (stranger, of_strangers) = channel(OF_STRANGERS);
    let (tell, expired) = channel(EXPIRED);
    let (ring, bell) = channel(1);
    (
        Tellers { of_sessions: session, of_strangers: stranger, expired: tell, bell: ring },
        Ends { of_sessions, of_strangers, expired, bell },
    )
}

impl Entry {
    /// Does something with the session as it is now.
    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut Session) -> R) -> R {
        if let Served::Here(_) = self.served {
            return change(&mut self.session);
        }
        let before = self.shared.vital();
        self.session.set_vital(before);
        let answer = change(&mut self.session);
        self.shared.note(before, self.session.vital());
        answer
    }

    /// The session as it is now.
    pub(super) fn current(&self) -> Session {
        let mut session = self.session.clone();
        if let Served::There { .. } = self.served {
            session.set_vital(self.shared.vital());
        }
        session
    }

    /// The main thread sees to it from now on, at least until then.
    pub(super) fn take_back(&mut self, until: Nanos) {
        if let Served::There { .. } = self.served {
            self.session.set_vital(self.shared.vital());
            self.shared.set_plan(None);
            self.served = Served::Here(until);
        }
    }
}

impl Bfd {
    /// Does something with a session, and what follows from it.
    pub(super) fn with(&self, index: u32, f: impl FnOnce(&mut Session, Nanos) -> Todo) {
        let now = self.now();
        let todo = {
            let mut sessions = self.sessions.borrow_mut();
            let Some(entry) = sessions.all.get_mut(&index) else { return };
            entry.change(|session| f(session, now))
        };
        self.carry_out(index, todo, now);
    }

    fn carry_out(&self, index: u32, todo: Todo, now: Nanos) {
        if todo.changed {
            let entry = self.sessions.borrow().all.get(&index).map(|entry| (entry.key, entry.current()));
            if let Some((key, session)) = entry {
                self.watch(key, Some(session.state == State::Up));
                tracing::info!("bfd: {} is {}: {}", key.peer, session.state, session.diag);
                let observers = self.observers.borrow().clone();
                for observe in observers {
                    observe(key, &session);
                }
            }
        }
        if let Some(bits) = todo.send {
            self.send(index, bits, now);
        }
        if let Some(expires) = todo.echo {
            self.send_echo(index, expires);
        }
        self.settle(index);
    }

    /// Decides who sees to a session, and when that is the main thread, when it looks at it next.
    pub(super) fn settle(&self, index: u32) {
        let now = self.now();
        let mut sessions = self.sessions.borrow_mut();
        let Sessions { all, deadlines, .. } = &mut *sessions;
        let Some(entry) = all.get_mut(&index) else { return };
        let is_steady = entry.session.is_steady();
        let is_current = matches!(entry.served, Served::There { plans, .. } if plans == self.plans.get());
        if !(is_steady && is_current && entry.shared.is_planned(&entry.session)) {
            entry.take_back(now);
            if is_steady && matches!(entry.served, Served::Here(until) if until <= now) {
                self.give_away(entry, now);
            }
        }
        let at = match entry.served {
            Served::Here(_) => entry.session.deadline().map(Time),
            Served::There { .. } => None,
        };
        if deadlines.set(index, at) {
            self.ring();
        }
    }

    /// Has [`tick`](Self::tick) look again when it is due next.
    fn ring(&self) {
        // A full channel has rung already.
        let _ = self.bell.try_send(());
    }

    /// Gives a session that is up to the thread whose turn it is.
    fn give_away(&self, entry: &mut Entry, now: Nanos) {
        let Some(plan) = self.plan(entry) else { return };
        entry.shared.begin(entry.session.vital());
        let version = entry.shared.set_plan(Some(plan));
        let (thread, session) = (self.keeping.feature().owner(entry.shared.index), Arc::clone(&entry.shared));
        entry.served = Served::There { version, plans: self.plans.get() };
        if self.graph.tell_state(&self.keeping, thread, move |_, held| held.take(session, version)).is_err() {
            // The thread is just ending.
            entry.take_back(now + AUDIT);
        } else if self.audit_at.get().is_none() {
            self.audit_at.set(Some(now + AUDIT));
            self.ring();
        }
    }

    /// What a thread is to do for a session.
    fn plan(&self, entry: &Entry) -> Option<Plan> {
        let (key, session) = (entry.key, entry.session.clone());
        let auth = session.auth.as_ref().map(|auth| (&auth.key, auth.key_id, 0));
        let bytes = session.control(0).write(auth);
        let control = Template::new(&self.control_datagram(key, session.discr), &bytes).ok()?;
        let echo = if session.echoing {
            let source = self.echo_address(key, session.echo_wish.is_some())?;
            Some(Template::new(&self.echo_datagram(key, session.discr, source), &[0; ECHO_LEN]).ok()?)
        } else {
            None
        };
        let least_ttl = if key.hop == super::Hop::Multi { entry.least_ttl } else { wire::TTL };
        Some(Plan { session, control, echo, probe: entry.probe, least_ttl })
    }

    /// What all plans have in common has changed.
    pub(super) fn plan_again(&self) {
        self.plans.set(self.plans.get().wrapping_add(1));
        let all: Vec<u32> = self.sessions.borrow().all.keys().copied().collect();
        for index in all {
            self.settle(index);
        }
    }

    /// How many sessions each thread sees to, by thread. The main thread sees to the others.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn given_away(&self) -> Result<BTreeMap<usize, usize>, GraphError> {
        let given: Vec<u32> = {
            let sessions = self.sessions.borrow();
            let given = sessions.all.iter().filter(|(_, entry)| matches!(entry.served, Served::There { .. }));
            given.map(|(index, _)| *index).collect()
        };
        let held = self.graph.on_every_state(&self.keeping, |_, held| held.sessions())?;
        let count = |held: BTreeSet<u32>| given.iter().filter(|index| held.contains(index)).count();
        Ok(held.into_iter().map(|(thread, held)| (thread, count(held))).collect())
    }

    /// A thread says that a session's time is over.
    pub(crate) fn expired(&self, report: Expired) {
        {
            let mut sessions = self.sessions.borrow_mut();
            let Some(entry) = sessions.all.get_mut(&report.index) else { return };
            if !matches!(entry.served, Served::There { version, .. } if version == report.version) {
                return;
            }
            entry.take_back(self.now());
        }
        self.with(report.index, |session, now| session.due(now, fastrand::f64()));
    }

    /// Takes sessions back that their thread is late to see to, twice in a row: the machine may have stood still. And those whose echo
    /// packets come from elsewhere now.
    fn audit(&self, now: Nanos, is_on_time: bool) {
        let (mut any, mut late, mut moved) = (false, Vec::new(), Vec::new());
        for (index, entry) in &mut self.sessions.borrow_mut().all {
            let Served::There { .. } = entry.served else { continue };
            any = true;
            let session = entry.current();
            let is_late = session.deadline().is_some_and(|at| now > at + OVERDUE);
            let seen = is_late.then(|| session.vital().next_tx);
            if is_late && is_on_time && entry.late == seen {
                late.push(*index);
            } else if session.echoing
                && self
                    .echo_address(entry.key, session.echo_wish.is_some())
                    .is_some_and(|from| !entry.shared.echoes_from(from))
            {
                moved.push(*index);
            }
            entry.late = seen;
        }
        self.audit_at.set(any.then_some(now + AUDIT));
        if !late.is_empty() {
            tracing::warn!(
                "bfd: a thread is late with {} sessions: the main thread sees to them",
                late.len()
            );
        }
        let late = late.into_iter().map(|index| (index, now + KEPT));
        for (index, until) in late.chain(moved.into_iter().map(|index| (index, now))) {
            if let Some(entry) = self.sessions.borrow_mut().all.get_mut(&index) {
                entry.take_back(until);
            }
            self.with(index, |session, now| session.due(now, fastrand::f64()));
        }
    }

    /// A session was made or deleted: all threads hear of it soon.
    pub(super) fn publish_soon(&self) {
        if self.publish_at.get().is_none() {
            let spacing = LISTS + LISTS_EACH * self.sessions.borrow().all.len() as Nanos;
            self.publish_at.set(Some(self.now().max(self.published_at.get() + spacing)));
            self.reception.is_behind.store(true, Ordering::Release);
            self.ring();
        }
    }

    fn publish(&self, now: Nanos) {
        let sessions = self.sessions.borrow();
        self.reception.known.replace(Known::of(sessions.all.values().map(|entry| &entry.shared)));
        self.reception.is_behind.store(false, Ordering::Release);
        self.publish_at.set(None);
        self.published_at.set(now);
    }

    /// Does what is due; when there is something next.
    pub(crate) fn tick(&self) -> Option<Time> {
        let now = self.now();
        if self.publish_at.get().is_some_and(|at| at <= now) {
            self.publish(now);
        }
        if let Some(at) = self.audit_at.get().filter(|at| *at <= now) {
            self.audit(now, now < at + AUDIT);
        }
        loop {
            let due = self.sessions.borrow_mut().deadlines.take_due(Time(now));
            let Some(index) = due else { break };
            let jitter = fastrand::f64();
            self.with(index, |session, now| session.due(now, jitter));
            // What is due again at once waits for the next round, so that others have theirs.
            if self.sessions.borrow().deadlines.of(index).is_some_and(|at| at.0 <= now) {
                break;
            }
        }
        let first = self.sessions.borrow().deadlines.first();
        let others = [self.publish_at.get(), self.audit_at.get()].into_iter().flatten().map(Time);
        first.into_iter().chain(others).min()
    }
}
