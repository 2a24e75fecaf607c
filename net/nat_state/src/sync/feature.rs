//! A kind of NAT as the main thread sees it, whatever its sessions are.

use std::cell::RefCell;
use std::fmt;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_buffer::SwIfIndex;
use shoal_graph::clock::Time;
use shoal_module::Control;

use super::ring::Bell;

/// What this router is of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// There is no other.
    #[default]
    Alone,
    /// It forwards, and tells of its sessions.
    Active,
    /// It takes in the other's sessions and begins none itself: no tuple is given out by two routers.
    Standby,
}

/// Which of two sessions stays when both want one tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Authority {
    /// The one that is here: this router forwards.
    Ours,
    /// The one that the other router has: it forwards.
    Theirs,
}

/// What is reported of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// It is as this says.
    Put,
    /// It has ended.
    Gone,
}

/// Why a session of the other router is not taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// It contradicts itself.
    #[error("what was received is no session")]
    Malformed,
    /// This kind of NAT is off here.
    #[error("it is off here")]
    Off,
    /// There is no such VRF here.
    #[error("there is no VRF {0} here")]
    NoTable(u32),
    /// Hosts do not share the address here.
    #[error("{0} is no shared address here")]
    NotShared(Ipv4Addr),
    /// There is no such mapping here, or another.
    #[error("the static mapping of {0} port {1} is another one here")]
    OtherMapping(Ipv4Addr, u16),
    /// Its two directions would be on two threads.
    #[error("the other router has another number of workers")]
    Workers,
    /// A session here has one of its tuples.
    #[error("a session here has one of its tuples")]
    Taken,
    /// There is no room.
    #[error("there are as many sessions as there may be")]
    Full,
}

impl Misfit {
    /// Names of the counters, by [`number`](Self::number).
    pub const NAMES: [&'static str; 8] = [
        "malformed",
        "feature-off",
        "no-table",
        "not-shared",
        "other-mapping",
        "other-workers",
        "tuple-taken",
        "no-room",
    ];

    /// Which of the counters.
    pub const fn number(self) -> usize {
        match self {
            Misfit::Malformed => 0,
            Misfit::Off => 1,
            Misfit::NoTable(_) => 2,
            Misfit::NotShared(_) => 3,
            Misfit::OtherMapping(..) => 4,
            Misfit::Workers => 5,
            Misfit::Taken => 6,
            Misfit::Full => 7,
        }
    }
}

/// What rings of threads had no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// Ends of sessions: all sessions have to be reported again, so that the other router knows what is not.
    pub ends: u64,
    /// Sessions: threads tell of these when there is room, and of no others.
    pub late: u64,
    /// Workers have come or gone: all have to be reported again.
    pub has_other_workers: bool,
}

/// What became of sessions, counted by all threads.
#[derive(Debug, Default)]
pub struct Counts {
    /// Sessions that were made.
    pub entered: AtomicU64,
    /// Sessions that were here already.
    pub renewed: AtomicU64,
    /// Sessions of this router that had to go for one of the other.
    pub replaced: AtomicU64,
    /// Sessions that the other router has ended.
    pub left: AtomicU64,
    /// Sessions that the other router did not name when it told of all.
    pub swept: AtomicU64,
    /// Sessions that were not taken in, by reason.
    pub refused: [AtomicU64; Misfit::NAMES.len()],
}

impl Counts {
    pub(super) fn refuse(&self, why: Misfit) {
        if let Some(counter) = self.refused.get(why.number()) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sessions of one kind of NAT that two routers may both know. All of it is called on the main thread, and none waits for a
/// thread that forwards but [`set_role`](Self::set_role).
pub trait SyncedFeature {
    /// Its number in datagrams: 1 to 15.
    fn number(&self) -> u8;

    /// What an operator calls it.
    fn name(&self) -> &'static str;

    /// Whether it is on.
    fn is_on(&self) -> bool;

    /// This router is that from now on; threads ring this bell.
    fn set_role(&self, role: Role, bell: &Arc<Bell>);

    /// Addresses for which this router answers on a link, while it forwards.
    fn answers(&self) -> Vec<(SwIfIndex, Ipv4Addr)>;

    /// Takes up to `most` events of threads: `each` hears what is reported of a session, and how it is written. Tells whether a walk
    /// that [`tell_all`](Self::tell_all) began has come to its end.
    fn take(&self, most: usize, each: &mut dyn FnMut(Op, &[u8])) -> bool;

    /// Whether events wait to be taken.
    fn waits(&self) -> bool;

    /// Begins to tell of all sessions.
    fn tell_all(&self);

    /// What threads do now and then: look at new sessions, walk on, sweep. A session that is used is reported again every
    /// `refresh` seconds. Tells whether more is to be done soon.
    fn work(&self, refresh: u32, now: Time) -> bool;

    /// What rings had no room for since this was asked last.
    fn take_lost(&self) -> Lost;

    /// What the other router says of a session. `forgiven`: seconds that its last packet may be younger than was reported.
    fn put(&self, op: Op, bytes: &[u8], forgiven: u32);

    /// Hands what was [`put`](Self::put) to its threads.
    fn flush(&self, now: Time);

    /// Whether threads have so much to take in that no more should be given to them.
    fn is_busy(&self) -> bool;

    /// The other router begins to name all of its sessions.
    fn begin_all(&self);

    /// It has named all: those that it did not name end, if this router is the standby.
    fn end_all(&self);

    /// What became of sessions.
    fn counts(&self) -> Arc<Counts>;

    /// Sessions that were refused lately, as text; each is told once.
    fn take_refused(&self) -> Vec<String>;
}

/// All kinds of NAT of this router that have such sessions.
#[derive(Default)]
pub struct SyncedFeatures(RefCell<Vec<Rc<dyn SyncedFeature>>>);

impl fmt::Debug for SyncedFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.borrow().iter().map(|feature| feature.name())).finish()
    }
}

impl SyncedFeatures {
    /// Those of a router.
    pub fn of(control: &Control) -> Rc<SyncedFeatures> {
        control.get().unwrap_or_else(|_| control.put(SyncedFeatures::default()))
    }

    /// One more.
    pub fn add(&self, feature: Rc<dyn SyncedFeature>) {
        self.0.borrow_mut().push(feature);
    }

    /// All.
    pub fn all(&self) -> Vec<Rc<dyn SyncedFeature>> {
        self.0.borrow().clone()
    }
}
