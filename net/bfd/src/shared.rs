//! What all threads know of sessions: who they are, and of those that are up what is to be sent and what is expected.
//!
//! The main thread writes plans; a thread that has one in hand keeps to it for a moment after it was taken back, which does no harm:
//! a packet too many is sent, with what was so a moment ago. The times that change with each packet are atomics: any thread that
//! receives a packet says so, and the one that watches the session reads it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_adj::AdjIndex;
use shoal_infra::{Guard, Published};

use crate::control::{Hop, SessionKey};
use crate::node::{MULTI_HOP, ReceivedPacket};
use crate::packet::Control;
use crate::session::{Nanos, Session, Vital};
use crate::template::Template;

/// Packets of one session that may wait for the main thread.
const MOST_WAITING: u32 = 8;
/// No time, and no sequence number.
const NONE: u64 = u64::MAX;

/// What is done for a session that is up.
#[derive(Debug)]
pub struct Plan {
    /// The session when the plan was made.
    pub session: Session,
    /// What is sent.
    pub control: Template,
    /// Echo packets, if the other end sends them back.
    pub echo: Option<Template>,
    /// By which packets go to a neighbour.
    pub probe: Option<AdjIndex>,
    /// The lowest TTL with which packets are taken.
    pub least_ttl: u8,
}

/// What changes with each packet.
#[derive(Debug, Default)]
struct Times {
    last_tx: AtomicU64,
    next_tx: AtomicU64,
    last_rx: AtomicU64,
    last_echo_rx: AtomicU64,
    next_echo: AtomicU64,
    sequence: AtomicU32,
    remote_sequence: AtomicU64,
}

/// A session, as all threads see it.
#[derive(Debug)]
pub struct SharedSession {
    /// Its number among the counters.
    pub index: u32,
    /// What it is known by.
    pub key: SessionKey,
    /// Our number of it.
    pub discr: u32,
    plan: Published<Option<Plan>>,
    /// Changes with each plan: a thread that holds an older one lets go.
    version: AtomicU32,
    times: Times,
    waiting: AtomicU32,
}

impl SharedSession {
    /// A session that the main thread sees to.
    pub fn new(index: u32, key: SessionKey, discr: u32) -> Self {
        SharedSession {
            index,
            key,
            discr,
            plan: Published::new(None),
            version: AtomicU32::new(0),
            times: Times::default(),
            waiting: AtomicU32::new(0),
        }
    }

    /// Whether a packet can be of this session, by where it comes from and goes to.
    pub fn fits(&self, heard: &ReceivedPacket) -> bool {
        let is_multi = heard.port == MULTI_HOP;
        let hop = match self.key.hop {
            Hop::Single(interface) => !is_multi && interface == heard.interface,
            Hop::Multi => is_multi,
        };
        hop && (self.key.local, self.key.peer) == (heard.dst, heard.src)
    }

    /// Whether a plan is the one that counts.
    pub fn is_version(&self, version: u32) -> bool {
        self.version.load(Ordering::Acquire) == version
    }

    /// What is to be done, if it is of this version.
    pub fn plan<'g>(&self, version: u32, guard: Guard<'g>) -> Option<&'g Plan> {
        let is_current = self.is_version(version);
        self.plan.load(guard).as_ref().filter(|_| is_current)
    }

    /// Publishes a plan, or that there is none; its version.
    pub fn set_plan(&self, plan: Option<Plan>) -> u32 {
        // Who holds an older one lets go before there is another.
        let version = self.version.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        self.plan.replace(plan);
        version
    }

    /// Whether the plan is that of a session that is so.
    pub fn is_planned(&self, session: &Session) -> bool {
        self.plan.get().as_ref().as_ref().is_some_and(|plan| plan.session.is_like(session))
    }

    /// Whether its echo packets come from this address.
    pub fn echoes_from(&self, source: IpAddr) -> bool {
        let plan = self.plan.get();
        plan.as_ref().as_ref().and_then(|plan| plan.echo.as_ref()).is_some_and(|echo| echo.source() == source)
    }

    /// The times as they are.
    pub fn vital(&self) -> Vital {
        let some = |time: &AtomicU64| Some(time.load(Ordering::Relaxed)).filter(|time| *time != NONE);
        let times = &self.times;
        Vital {
            last_tx: some(&times.last_tx),
            next_tx: times.next_tx.load(Ordering::Relaxed),
            last_rx: some(&times.last_rx),
            last_echo_rx: times.last_echo_rx.load(Ordering::Relaxed),
            next_echo: times.next_echo.load(Ordering::Relaxed),
            sequence: times.sequence.load(Ordering::Relaxed),
            remote_sequence: some(&times.remote_sequence).map(|number| number as u32),
        }
    }

    /// The times as they are to begin with.
    pub fn begin(&self, vital: Vital) {
        let times = &self.times;
        times.last_tx.store(vital.last_tx.unwrap_or(NONE), Ordering::Relaxed);
        times.next_tx.store(vital.next_tx, Ordering::Relaxed);
        times.last_rx.store(vital.last_rx.unwrap_or(NONE), Ordering::Relaxed);
        times.last_echo_rx.store(vital.last_echo_rx, Ordering::Relaxed);
        times.next_echo.store(vital.next_echo, Ordering::Relaxed);
        times.sequence.store(vital.sequence, Ordering::Relaxed);
        times.remote_sequence.store(vital.remote_sequence.map_or(NONE, u64::from), Ordering::Relaxed);
    }

    /// Notes what has changed between two looks at the times. What another thread has noted meanwhile stays.
    pub fn note(&self, before: Vital, after: Vital) {
        let times = &self.times;
        if let Some(at) = after.last_tx.filter(|_| after.last_tx != before.last_tx) {
            times.last_tx.store(at, Ordering::Relaxed);
        }
        if after.next_tx != before.next_tx {
            times.next_tx.store(after.next_tx, Ordering::Relaxed);
        }
        if let Some(at) = after.last_rx.filter(|_| after.last_rx != before.last_rx) {
            times.last_rx.fetch_max(at, Ordering::Relaxed);
        }
        if after.last_echo_rx != before.last_echo_rx {
            times.last_echo_rx.fetch_max(after.last_echo_rx, Ordering::Relaxed);
        }
        if after.next_echo != before.next_echo {
            times.next_echo.store(after.next_echo, Ordering::Relaxed);
        }
        let used = after.sequence.wrapping_sub(before.sequence);
        if used != 0 {
            times.sequence.fetch_add(used, Ordering::Relaxed);
        }
        if after.remote_sequence != before.remote_sequence {
            times.remote_sequence.store(after.remote_sequence.map_or(NONE, u64::from), Ordering::Relaxed);
        }
    }

    /// Takes a control packet that says nothing new; false: the main thread is to see it.
    pub fn hears(&self, control: &Control, heard: &ReceivedPacket, now: Nanos, guard: Guard<'_>) -> bool {
        let Some(plan) = self.plan.load(guard) else { return false };
        if heard.ttl < plan.least_ttl {
            return false;
        }
        let before = self.vital();
        let mut session = plan.session.clone();
        session.set_vital(before);
        let is_old = session.hears(control, heard.bytes(), now);
        if is_old {
            self.note(before, session.vital());
        }
        is_old
    }

    /// Takes an echo packet that has come back in time; false: the main thread is to see it.
    pub fn hears_echo(&self, now: Nanos, guard: Guard<'_>) -> bool {
        let is_echoing = self.plan.load(guard).as_ref().is_some_and(|plan| plan.echo.is_some());
        if is_echoing {
            self.times.last_echo_rx.fetch_max(now, Ordering::Relaxed);
        }
        is_echoing
    }

    /// A packet is to wait for the main thread; false if too many of this session do.
    pub fn may_wait(&self) -> bool {
        let waits = self.waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING;
        if !waits {
            self.has_waited();
        }
        waits
    }

    /// It waits no more.
    pub fn has_waited(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Known {
    by_discr: HashMap<u32, Arc<SharedSession>>,
    by_key: HashMap<SessionKey, Arc<SharedSession>>,
}

impl Known {
    /// These.
    pub fn of<'a>(all: impl ExactSizeIterator<Item = &'a Arc<SharedSession>>) -> Known {
        let mut known =
            Known { by_discr: HashMap::with_capacity(all.len()), by_key: HashMap::with_capacity(all.len()) };
        for session in all {
            known.by_discr.insert(session.discr, Arc::clone(session));
            known.by_key.insert(session.key, Arc::clone(session));
        }
        known
    }

    /// The one with this number.
    pub fn numbered(&self, discr: u32) -> Option<&Arc<SharedSession>> {
        self.by_discr.get(&discr)
    }

    /// The one that a packet is of.
    pub fn of_packet(&self, control: &Control, heard: &ReceivedPacket) -> Option<&Arc<SharedSession>> {
        if control.your_discr != 0 {
            return self.numbered(control.your_discr).filter(|session| session.fits(heard));
        }
        let hop = if heard.port == MULTI_HOP { Hop::Multi } else { Hop::Single(heard.interface) };
        self.by_key.get(&SessionKey { hop, local: heard.dst, peer: heard.src })
    }
}
