//! Quiescent-state based reclamation: when may memory that workers read be freed or reused?
//!
//! A thread that reads shared structures owns a [`Reader`]. Between two packets loops it says
//! [`Reader::quiescent`]: "I hold no reference any more". The control plane first unlinks what it wants to free, then
//! waits until every online reader has announced it ([`synchronize`]), or hands the work over to be done later
//! ([`retire`], [`reclaim`]). There is one domain per process.
//!
//! # Why the compiler keeps you honest
//!
//! References come from a [`Guard`], which borrows the `Reader`; `quiescent` takes `&mut Reader`.
//! So no reference can live across a quiescent point.
//!
//! # A reader that does not move
//!
//! A thread that hangs online passes no quiescent point, and what waits for one waits. Writers do not wait with it:
//! [`Grace::soon`] gives it a moment, once; [`admit`] refuses further changes, and names the thread, when more than
//! [`MOST_WAITING`] wait for it. When it moves again everything that waits is done.
//!
//! # Memory ordering
//!
//! The domain has an epoch, raised only under its mutex. A reader's slot holds the last epoch it
//! saw at a quiescent point, or 0 when offline.
//!
//! * `quiescent` needs no store-load barrier. A writer waits until the slot holds an epoch `e` not
//!   less than its own, which it raised *after* unlinking. The reader got `e` by an acquire load
//!   of the epoch, so everything it reads afterwards is newer than the unlinking; it stored `e`
//!   with release, so everything it read before happened before the writer sees `e`. A slot that
//!   is seen late only makes the writer wait longer.
//! * `online` needs one, because a writer takes an offline slot as a yes without waiting for an
//!   answer. Reader: store slot, fence, read pointers. Writer: unlink, fence, read slots. With
//!   both fences sequentially consistent, either the writer sees the slot or the reader sees the
//!   unlinking.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock, thread_local};

pub use crate::raw::published::Published;

const OFFLINE: u64 = 0;

/// Most changes that wait for one reader before [`admit`] refuses more. What one takes is some dozens of bytes.
pub const MOST_WAITING: u64 = 1 << 17;

/// One per reader, alone on its pair of cache lines: written by its thread, read by writers.
#[repr(align(128))]
struct Slot {
    epoch: AtomicU64,
    /// The thread's name, for those who wait for it.
    name: Box<str>,
}

struct Garbage {
    /// Free when every online reader has seen this epoch.
    epoch: u64,
    free: Box<dyn FnOnce() + Send>,
}

struct State {
    slots: Vec<Arc<Slot>>,
    /// An epoch that some reader did not leave when a writer gave it a moment: the next writer gives it none.
    left_in: u64,
    /// Epochs never decrease from front to back.
    garbage: VecDeque<Garbage>,
}

/// Padded on both sides: every reader reads the epoch in each loop, while the mutex is written.
#[repr(align(128))]
struct Epoch(AtomicU64);

struct Domain {
    epoch: Epoch,
    state: Mutex<State>,
}

macro_rules! new_domain {
    () => {
        Domain {
            epoch: Epoch(AtomicU64::new(1)),
            state: Mutex::new(State { slots: Vec::new(), left_in: OFFLINE, garbage: VecDeque::new() }),
        }
    };
}

#[cfg(not(loom))]
static DOMAIN: Domain = new_domain!();

#[cfg(loom)]
loom::lazy_static! {
    static ref DOMAIN: Domain = new_domain!();
}

#[cfg(not(loom))]
thread_local! {
    /// How many readers of this thread are online.
    static OWN_ONLINE: Cell<usize> = const { Cell::new(0) };
}

#[cfg(loom)]
thread_local! {
    static OWN_ONLINE: Cell<usize> = Cell::new(0);
}

impl Domain {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn current(&self) -> u64 {
        self.epoch.0.load(Ordering::Acquire)
    }

    /// Raises the epoch. The mutex (its guard is the argument) orders this after every unlinking
    /// whose garbage is in the queue already, and the release passes that on to readers.
    fn raise(&self, _held: &mut State) -> u64 {
        self.epoch.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}

impl State {
    /// The oldest epoch an online reader may still be in; `u64::MAX` when all are offline.
    fn oldest(&self) -> u64 {
        // The writer's half of the pair described under "Memory ordering".
        fence(Ordering::SeqCst);
        self.slots
            .iter()
            .map(|slot| slot.epoch.load(Ordering::Acquire))
            .filter(|&epoch| epoch != OFFLINE)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The reader that is in the oldest epoch.
    fn last(&self) -> Option<&Slot> {
        let online = self.slots.iter().map(|slot| (slot.epoch.load(Ordering::Acquire), slot));
        online.filter(|(epoch, _)| *epoch != OFFLINE).min_by_key(|(epoch, _)| *epoch).map(|(_, slot)| &**slot)
    }
}

#[cfg(not(loom))]
fn own_name() -> Box<str> {
    std::thread::current().name().unwrap_or("without a name").into()
}

#[cfg(loom)]
fn own_name() -> Box<str> {
    "loom".into()
}

/// A thread's membership in the domain. Neither `Send` nor `Sync`.
///
/// It starts online. While it is online, memory retired by others stays until the next
/// [`quiescent`](Reader::quiescent); a thread about to block goes [`offline`](Reader::offline).
/// Leaking an online reader (`mem::forget`) is safe but stops reclamation for ever.
pub struct Reader {
    slot: Arc<Slot>,
    /// What the slot holds; saves reading an atomic.
    seen: Cell<u64>,
    _thread_bound: PhantomData<*const ()>,
}

/// Proof that a [`Reader`] is online and will not be quiescent before `'a` ends.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    _reader: PhantomData<&'a Reader>,
}

impl Reader {
    /// Registers the calling thread, online.
    pub fn register() -> Reader {
        let slot = Arc::new(Slot { epoch: AtomicU64::new(OFFLINE), name: own_name() });
        DOMAIN.state().slots.push(Arc::clone(&slot));
        let reader = Reader { slot, seen: Cell::new(OFFLINE), _thread_bound: PhantomData };
        reader.enter();
        reader
    }

    /// States that this thread holds no reference into shared structures. A load, and a store when
    /// the epoch has changed. Does nothing while offline.
    #[inline]
    pub fn quiescent(&mut self) {
        let seen = self.seen.get();
        if seen == OFFLINE {
            return;
        }
        let now = DOMAIN.current();
        if now != seen {
            self.slot.epoch.store(now, Ordering::Release);
            self.seen.set(now);
        }
    }

    /// Leaves until [`online`](Reader::online) or [`guard`](Reader::guard): call before blocking.
    pub fn offline(&mut self) {
        if self.seen.replace(OFFLINE) != OFFLINE {
            self.slot.epoch.store(OFFLINE, Ordering::Release);
            OWN_ONLINE.with(|count| count.set(count.get().saturating_sub(1)));
        }
    }

    /// Returns from [`offline`](Reader::offline). Costs a full fence.
    pub fn online(&mut self) {
        self.enter();
    }

    /// Whether this reader is online.
    pub fn is_online(&self) -> bool {
        self.seen.get() != OFFLINE
    }

    /// Allows loads until it ends. Brings an offline reader online first, at the cost of a fence.
    #[inline]
    pub fn guard(&self) -> Guard<'_> {
        if self.seen.get() == OFFLINE {
            self.enter();
        }
        Guard { _reader: PhantomData }
    }

    #[cold]
    fn enter(&self) {
        if self.seen.get() != OFFLINE {
            return;
        }
        let now = DOMAIN.current();
        self.slot.epoch.store(now, Ordering::Relaxed);
        // The reader's half of the pair described under "Memory ordering".
        fence(Ordering::SeqCst);
        self.seen.set(now);
        OWN_ONLINE.with(|count| count.set(count.get() + 1));
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.offline();
        DOMAIN.state().slots.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// The calling thread would wait for itself: one of its own readers is online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnReaderOnline;

impl fmt::Display for OwnReaderOnline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the calling thread's own reader is online; take it offline before waiting")
    }
}

impl std::error::Error for OwnReaderOnline {}

/// A grace period: over when every reader that was online at its start has been quiescent since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grace(u64);

impl Grace {
    /// A grace period that is over already.
    pub const OVER: Grace = Grace(0);

    /// Starts one. What this thread unlinked before cannot be reached once it is over.
    pub fn start() -> Grace {
        Grace(DOMAIN.raise(&mut DOMAIN.state()))
    }

    /// Whether it is over. Takes the domain's lock; not for the data plane.
    pub fn is_over(self) -> bool {
        self == Grace::OVER || self.0 <= DOMAIN.state().oldest()
    }

    /// Blocks until it is over, however long that takes: spins, then yields, then sleeps. For programs whose readers
    /// are known to move; a router's control plane calls [`soon`](Grace::soon).
    ///
    /// Fails, at once and without waiting, when it is not over and a reader of the calling thread
    /// is online: that thread would wait for itself, or two such threads for each other.
    pub fn wait(self) -> Result<(), OwnReaderOnline> {
        let mut rounds = 0;
        while !self.is_over() {
            if OWN_ONLINE.with(Cell::get) != 0 {
                return Err(OwnReaderOnline);
            }
            pause(rounds);
            rounds += 1;
        }
        Ok(())
    }

    /// Whether it is over, after a moment for readers that move: a thousandth of a second at most, and none when an
    /// earlier call gave one in vain and the reader has not moved since. So a reader that is stuck holds no writer up.
    ///
    /// # Errors
    /// As [`wait`](Grace::wait).
    pub fn soon(self) -> Result<bool, OwnReaderOnline> {
        self.within(MOMENT)
    }

    fn within(self, most: Duration) -> Result<bool, OwnReaderOnline> {
        if self.is_over() {
            return Ok(true);
        }
        if OWN_ONLINE.with(Cell::get) != 0 {
            return Err(OwnReaderOnline);
        }
        let oldest = {
            let state = DOMAIN.state();
            let oldest = state.oldest();
            if oldest == state.left_in {
                return Ok(false);
            }
            oldest
        };
        let begun = now();
        let mut rounds = 0;
        while elapsed(&begun, rounds) < most {
            pause(rounds);
            rounds += 1;
            if self.is_over() {
                return Ok(true);
            }
        }
        let mut state = DOMAIN.state();
        if state.oldest() == oldest {
            state.left_in = oldest;
        }
        Ok(false)
    }
}

/// How long [`Grace::soon`] waits.
const MOMENT: Duration = Duration::from_millis(1);
/// How long [`admit`] waits.
const LONG_MOMENT: Duration = Duration::from_millis(100);

#[cfg(not(loom))]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[cfg(not(loom))]
fn elapsed(begun: &std::time::Instant, _rounds: u32) -> Duration {
    begun.elapsed()
}

#[cfg(loom)]
fn now() {}

/// Time in the model passes with the rounds.
#[cfg(loom)]
fn elapsed((): &(), rounds: u32) -> Duration {
    if rounds < 2 { Duration::ZERO } else { LONG_MOMENT }
}

/// Too many changes wait for a reader that does not move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backlog {
    /// How many changes wait, at least.
    pub waiting: u64,
    /// The name of the reader's thread.
    pub thread: String,
}

impl fmt::Display for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "thread {} does not move and {} changes wait for it: there can be no more before it does",
            self.thread, self.waiting
        )
    }
}

impl std::error::Error for Backlog {}

/// Asks before a change that leaves something to be freed whether there is room for it. Always, while readers move; up
/// to [`MOST_WAITING`] changes while one does not. Cheap enough for every change of a table.
///
/// # Errors
/// A reader does not move, and too much waits for it already: the change is to be refused before it is begun.
pub fn admit() -> Result<(), Backlog> {
    let waiting = {
        let state = DOMAIN.state();
        let current = DOMAIN.current();
        // Each change has raised the epoch, or has put something into the queue for the next time it is raised.
        let raised = current.saturating_sub(state.oldest());
        raised.max(state.garbage.len() as u64)
    };
    if waiting < MOST_WAITING {
        return Ok(());
    }
    // Perhaps no thread has looked yet. This raises the epoch, if that was left to do.
    reclaim();
    let grace = Grace(DOMAIN.current());
    // A thread whose own reader is online is no control plane that frees; the result is right all the same.
    let over = grace.within(LONG_MOMENT).unwrap_or(false);
    if over {
        reclaim();
        return Ok(());
    }
    let state = DOMAIN.state();
    let thread = state.last().map(|slot| slot.name.to_string());
    thread.map_or(Ok(()), |thread| Err(Backlog { waiting, thread }))
}

#[cfg(not(loom))]
fn pause(rounds: u32) {
    match rounds {
        0..32 => std::hint::spin_loop(),
        32..64 => crate::sync::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

#[cfg(loom)]
fn pause(_rounds: u32) {
    crate::sync::yield_now();
}

/// Blocks until every online reader has passed a quiescent point since the call, however long that takes: for tests
/// and the lab.
///
/// The caller's own readers must be offline, since a thread cannot wait for itself; the error says
/// so and nothing was waited for.
pub fn synchronize() -> Result<(), OwnReaderOnline> {
    if OWN_ONLINE.with(Cell::get) != 0 {
        return Err(OwnReaderOnline);
    }
    Grace::start().wait()
}

/// Queues `garbage`, which runs in some later [`reclaim`] after a grace period. Never blocks on
/// readers. What it frees must be unlinked already.
pub fn retire(garbage: impl FnOnce() + Send + 'static) {
    let mut state = DOMAIN.state();
    // The epoch is raised later, once for many, by `reclaim`.
    let epoch = DOMAIN.current() + 1;
    state.garbage.push_back(Garbage { epoch, free: Box::new(garbage) });
}

/// Runs what [`retire`] queued and whose grace period is over; returns how many. Does not wait:
/// the control loop calls it between events.
pub fn reclaim() -> usize {
    let ready: Vec<Garbage> = {
        let mut state = DOMAIN.state();
        let Some(newest) = state.garbage.back().map(|garbage| garbage.epoch) else {
            return 0;
        };
        if newest > DOMAIN.current() {
            DOMAIN.raise(&mut state);
        }
        let oldest = state.oldest();
        let count = state.garbage.partition_point(|g| g.epoch <= oldest);
        state.garbage.drain(..count).collect()
    };
    // Outside the lock, because garbage may retire more.
    let count = ready.len();
    for garbage in ready {
        (garbage.free)();
    }
    count
}

/// How many pieces of garbage wait for their grace period or for [`reclaim`].
pub fn pending() -> usize {
    DOMAIN.state().garbage.len()
}
