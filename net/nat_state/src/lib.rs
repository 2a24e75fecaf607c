//! What threads keep of a NAT, and what becomes of it when workers come and go.
//!
//! A kind of NAT implements [`SessionStore`] for the sessions of one thread; [`SessionStores`] is its state in the graph.
//! With [`sync`] another router knows the sessions, too.
#![forbid(unsafe_code)]

pub mod sync;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_flow::TableError;
use shoal_graph::clock::Time;
use shoal_graph::{FrameCx, NoError, NoNext, Shares, Stateful};

/// The sessions of one thread.
pub trait SessionStore: Sized + Send + 'static {
    /// Name of the node under which sessions end.
    const TIMER: &'static str;
    /// A session, as it goes from thread to thread.
    type Record: Send + 'static;
    /// What all threads and the control plane share.
    type Shared: Send + Sync + 'static;

    /// Of a thread that has none, and no room for any.
    fn none() -> Self;

    /// Makes room, as is configured.
    ///
    /// # Errors
    /// There is no memory.
    fn open(&mut self, shared: &Self::Shared) -> Result<(), TableError>;

    /// When a session may end. Asked after each frame, so it must be cheap.
    fn due(&self) -> Option<Time>;

    /// Ends sessions whose time is over, a few at once, and counts what is left.
    fn expire(&mut self, shared: &Self::Shared, cx: &mut FrameCx<'_>);

    /// Publishes how many there are on a thread.
    fn count(&self, shared: &Self::Shared, thread: usize);

    /// The thread that a session belongs to, now that others forward; `None`: none can have it any more.
    fn owner(shared: &Self::Shared, record: &Self::Record) -> Option<usize>;

    /// Takes sessions out.
    fn take_out(&mut self, goes: impl FnMut(&Self::Record) -> bool) -> Vec<Self::Record>;

    /// Sessions on their way to another thread.
    fn parcel(records: Vec<Self::Record>) -> Self;

    /// Takes in what another thread had; what cannot be kept is lost.
    fn take_in(&mut self, other: Self, shared: &Self::Shared, now: Time);

    /// These threads forward from now on.
    fn set_workers(shared: &Self::Shared, workers: &[usize]);
}

/// What threads keep, and how.
pub struct SessionStores<S: SessionStore> {
    shared: Arc<S::Shared>,
    /// Whether threads that come have sessions.
    on: AtomicBool,
    workers: Mutex<Vec<usize>>,
}

impl<S: SessionStore> SessionStores<S> {
    /// Nothing is kept until it is [switched on](Self::set).
    pub fn new(shared: Arc<S::Shared>) -> Self {
        SessionStores { shared, on: AtomicBool::new(false), workers: Mutex::new(vec![0]) }
    }

    /// Whether threads that come have sessions.
    pub fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// What all threads and the control plane share.
    pub fn shared(&self) -> &S::Shared {
        &self.shared
    }

    /// The threads that forward.
    pub fn workers(&self) -> Vec<usize> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn share(&self, all: Vec<S::Record>) -> Shares<S> {
        let mut parts: BTreeMap<usize, Vec<S::Record>> = BTreeMap::new();
        for record in all {
            if let Some(thread) = S::owner(&self.shared, &record) {
                parts.entry(thread).or_default().push(record);
            }
        }
        parts.into_iter().map(|(thread, records)| (thread, S::parcel(records))).collect()
    }
}

impl<S: SessionStore> Stateful for SessionStores<S> {
    const NAME: &'static str = S::TIMER;
    type Next = NoNext;
    type Error = NoError;
    type State = S;

    fn make(&self, thread: usize) -> S {
        let mut sessions = S::none();
        if self.on.load(Ordering::Relaxed)
            && let Err(e) = sessions.open(&self.shared)
        {
            tracing::warn!(thread, "{} has no sessions to end: {e}", S::TIMER);
        }
        sessions
    }

    #[inline(always)]
    fn due(&self, sessions: &S) -> Option<Time> {
        sessions.due()
    }

    fn expire(&self, sessions: &mut S, cx: &mut FrameCx<'_>) {
        sessions.expire(&self.shared, cx);
    }

    fn workers(&self, workers: &[usize]) {
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers.to_vec();
        S::set_workers(&self.shared, workers);
    }

    fn reshard(&self, sessions: &mut S, here: usize, _: &[usize]) -> Shares<S> {
        let moved = sessions.take_out(|record| S::owner(&self.shared, record) != Some(here));
        sessions.count(&self.shared, here);
        self.share(moved)
    }

    fn give_up(&self, mut ended: S, _: &[usize]) -> Shares<S> {
        self.share(ended.take_out(|_| true))
    }

    fn adopt(&self, mine: &mut S, other: S, cx: &mut FrameCx<'_>) {
        mine.take_in(other, &self.shared, cx.now());
        mine.count(&self.shared, cx.thread());
    }
}
