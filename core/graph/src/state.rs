//! What a feature keeps on each thread: made, lent to its nodes, timed, shared out and freed by the runtime.
//!
//! Packets of a session meet on one thread, so that what is known of the session needs no lock: it is the thread's. A
//! feature says once how its state is made and what becomes of it when threads come and go ([`Stateful`]), registers that
//! with [`Graph::add_state`](crate::Graph::add_state), and gives the [`StateKey`] to its nodes
//! ([`StatefulNode`](crate::StatefulNode), [`StatefulStagedNode`](crate::StatefulStagedNode),
//! [`StatefulFrameNode`](crate::StatefulFrameNode)), each of which is then given the state by `&mut`. Several nodes may
//! name the same state. The control plane looks in between two rounds of a thread
//! ([`Graph::on_every_state`](crate::Graph::on_every_state)).
//!
//! *Timer.* A state says when it is next due ([`Stateful::due`]); the runtime asks after each frame that had the state in
//! hand, and keeps the answers of all states of a thread in one wheel. A round in which nothing is due compares two
//! numbers. What is due runs as a node of its own, [`Stateful::NAME`], and a thread that rests wakes for it.
//!
//! *Threads.* When a worker has come or gone, every state is asked for what now belongs elsewhere
//! ([`Stateful::reshard`]), and the state of the one that ended is given up as a whole ([`Stateful::give_up`]); the parts
//! are taken in on their new threads ([`Stateful::adopt`]).
#![allow(clippy::unnecessary_box_returns)] // a state stays where it is while nodes borrow it

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use shoal_infra::timer_wheel::{TimerHandle, TimerWheel};

use crate::FrameCx;
use crate::clock::Time;
use crate::lane::Lane;
use crate::node::{ErrorCounters, NextNodes, NodeIndex};
use crate::raw::Known;
use crate::topology::Topology;

/// Part of a state, and the thread it goes to.
pub type Shares<S> = Vec<(usize, S)>;

/// A feature that keeps something on each thread.
///
/// Of the threads that are named, only those forward: all workers, or the main thread (0) when there is none.
pub trait Stateful: Send + Sync + 'static {
    /// Name of the node under which the timer runs.
    const NAME: &'static str;
    /// Where packets go that the timer lets go.
    type Next: NextNodes;
    /// What the timer counts.
    type Error: ErrorCounters;
    /// What is kept on each thread.
    type State: Send + 'static;

    /// The state of a thread, at first.
    fn make(&self, thread: usize) -> Self::State;

    /// When the state has work of its own to do next. Asked after each frame, so it must be cheap.
    #[inline(always)]
    fn due(&self, _state: &Self::State) -> Option<Time> {
        None
    }

    /// Does what is due, but no more than a frame's worth: packets wait meanwhile. What is left is due at once.
    fn expire(&self, _state: &mut Self::State, _cx: &mut FrameCx<'_>) {}

    /// These threads forward from now on; called on the main thread before any state is asked to move.
    fn workers(&self, _workers: &[usize]) {}

    /// Takes out of the state of thread `here` what belongs to other threads, now that these forward.
    fn reshard(&self, _state: &mut Self::State, _here: usize, _workers: &[usize]) -> Shares<Self::State> {
        Vec::new()
    }

    /// Shares out the whole state of a thread that has ended. All to the first of those that are left, if the feature
    /// does not care.
    fn give_up(&self, ended: Self::State, workers: &[usize]) -> Shares<Self::State> {
        vec![(workers.first().copied().unwrap_or(0), ended)]
    }

    /// Takes in, on its own thread, what another thread gave away. What cannot be kept is let go by `cx`.
    fn adopt(&self, mine: &mut Self::State, other: Self::State, cx: &mut FrameCx<'_>);
}

/// Names the state of one feature. Clones name the same.
pub struct StateKey<M> {
    pub(crate) slot: usize,
    pub(crate) node: NodeIndex,
    pub(crate) feature: Arc<M>,
}

impl<M> Clone for StateKey<M> {
    fn clone(&self) -> Self {
        StateKey { slot: self.slot, node: self.node, feature: Arc::clone(&self.feature) }
    }
}

impl<M> StateKey<M> {
    /// The feature.
    pub fn feature(&self) -> &Arc<M> {
        &self.feature
    }
}

impl<M: Stateful> fmt::Debug for StateKey<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {} of {}", self.slot, M::NAME)
    }
}

/// A feature's state on one thread, with the feature.
pub(crate) struct Slot<M: Stateful> {
    pub(crate) feature: Arc<M>,
    pub(crate) state: M::State,
}

/// Any feature's state on one thread.
pub(crate) trait AnyState: Any + Send {
    fn due(&self) -> Time;
    fn expire(&mut self, cx: &mut FrameCx<'_>);
    fn reshard(&mut self, here: usize, workers: &[usize]) -> Shares<Box<dyn AnyState>>;
    fn give_up(self: Box<Self>, workers: &[usize]) -> Shares<Box<dyn AnyState>>;
    fn adopt(&mut self, other: Box<dyn AnyState>, cx: &mut FrameCx<'_>);
}

/// Later than all times that are ever reached.
const NEVER: Time = Time(u64::MAX);

impl<M: Stateful> Slot<M> {
    fn boxed(feature: &Arc<M>, shares: Shares<M::State>) -> Shares<Box<dyn AnyState>> {
        let slot = |state| Slot { feature: Arc::clone(feature), state };
        shares.into_iter().map(|(to, state)| (to, Box::new(slot(state)) as Box<dyn AnyState>)).collect()
    }
}

impl<M: Stateful> AnyState for Slot<M> {
    fn due(&self) -> Time {
        self.feature.due(&self.state).unwrap_or(NEVER)
    }

    fn expire(&mut self, cx: &mut FrameCx<'_>) {
        self.feature.expire(&mut self.state, cx);
    }

    fn reshard(&mut self, here: usize, workers: &[usize]) -> Shares<Box<dyn AnyState>> {
        let shares = self.feature.reshard(&mut self.state, here, workers);
        Self::boxed(&self.feature, shares)
    }

    fn give_up(self: Box<Self>, workers: &[usize]) -> Shares<Box<dyn AnyState>> {
        let Slot { feature, state } = *self;
        let shares = feature.give_up(state, workers);
        Self::boxed(&feature, shares)
    }

    fn adopt(&mut self, other: Box<dyn AnyState>, cx: &mut FrameCx<'_>) {
        match (other as Box<dyn Any>).downcast::<Slot<M>>() {
            Ok(other) => self.feature.adopt(&mut self.state, other.state, cx),
            Err(_) => unreachable!("a slot has states of one feature on all threads"),
        }
    }
}

/// Makes a feature's state on a thread.
pub(crate) trait StateMaker: Send + Sync {
    fn make(&self, thread: usize) -> Place;
    fn workers(&self, workers: &[usize]);
}

impl<M: Stateful> StateMaker for StateKey<M> {
    fn make(&self, thread: usize) -> Place {
        let held: Box<dyn AnyState> = self.fresh(thread);
        Place { held: Some(held), node: self.node, due: NEVER, timer: None }
    }

    fn workers(&self, workers: &[usize]) {
        self.feature.workers(workers);
    }
}

impl<M: Stateful> StateKey<M> {
    fn fresh(&self, thread: usize) -> Box<Slot<M>> {
        Box::new(Slot { feature: Arc::clone(&self.feature), state: self.feature.make(thread) })
    }
}

/// Where one feature's state is on a thread.
pub(crate) struct Place {
    /// `None` while a node has it.
    held: Option<Box<dyn AnyState>>,
    /// The node its timer runs as.
    node: NodeIndex,
    /// When the timer is set to; the state may be due later meanwhile.
    due: Time,
    timer: Option<TimerHandle<usize>>,
}

/// A state in the hands of a chain's stage.
struct BorrowedState {
    slot: usize,
    held: Known<dyn AnyState>,
}

/// Nanoseconds of a tick, as a power of two: 65 microseconds.
const TICK: u32 = 16;

/// All states of one thread.
pub(crate) struct States {
    places: Vec<Option<Place>>,
    /// For each state with something to do, when: its slot.
    timer: TimerWheel<usize>,
    /// No timer is due before.
    next: Time,
    /// Slots that are due, kept so that expiring allocates nothing.
    fired: Vec<usize>,
    /// What stages of the chain that runs have in hand.
    lent: Vec<BorrowedState>,
}

impl Default for States {
    fn default() -> Self {
        States {
            places: Vec::new(),
            timer: TimerWheel::new(0),
            next: NEVER,
            fired: Vec::new(),
            lent: Vec::new(),
        }
    }
}

impl States {
    /// States of a new thread.
    pub(crate) fn of(makers: &[Arc<dyn StateMaker>], thread: usize) -> Self {
        let mut states = States::default();
        for (slot, maker) in makers.iter().enumerate() {
            states.enter(slot, maker.make(thread));
        }
        states
    }

    /// Adds a state that was made just now.
    pub(crate) fn enter(&mut self, slot: usize, place: Place) {
        if self.places.len() <= slot {
            self.places.resize_with(slot + 1, || None);
        }
        if let Some(to) = self.places.get_mut(slot) {
            *to = Some(place);
        }
        self.set(slot);
    }

    /// Lends a state to a node, which gives it back by [`States::put`].
    #[inline(always)]
    pub(crate) fn take<M: Stateful>(&mut self, key: &StateKey<M>, thread: usize) -> Box<Slot<M>> {
        let held = self.places.get_mut(key.slot).and_then(Option::as_mut).and_then(|place| place.held.take());
        match held.map(|held| (held as Box<dyn Any>).downcast::<Slot<M>>()) {
            Some(Ok(slot)) => slot,
            _ => self.missing(key, thread),
        }
    }

    /// A thread that did not answer when the feature was registered makes its state now.
    #[cold]
    fn missing<M: Stateful>(&mut self, key: &StateKey<M>, thread: usize) -> Box<Slot<M>> {
        if self.places.get(key.slot).is_some_and(Option::is_some) {
            unreachable!("{key:?} is lent to one node at a time, by a key of the same graph");
        }
        let mut place = key.make(thread);
        place.held = None;
        self.enter(key.slot, place);
        key.fresh(thread)
    }

    /// Takes a state back.
    #[inline(always)]
    pub(crate) fn put<M: Stateful>(&mut self, key: &StateKey<M>, slot: Box<Slot<M>>) {
        let due = slot.due();
        if let Some(place) = self.places.get_mut(key.slot).and_then(Option::as_mut) {
            place.held = Some(slot);
            if due < place.due {
                self.set_timer(key.slot, due);
            }
        }
    }

    /// A state for a stage of a chain. It stays in hand until [`States::return_lent`], at the frame's end.
    #[inline(always)]
    pub(crate) fn lent<M: Stateful>(&mut self, key: &StateKey<M>, thread: usize) -> &mut M::State {
        // A chain has few stages with state, most often one.
        let at = match self.lent.iter().position(|lent| lent.slot == key.slot) {
            Some(at) => at,
            None => self.take_lent(key, thread),
        };
        let found = self.lent.get_mut(at);
        match found.and_then(|lent| lent.held.get::<Slot<M>>()) {
            Some(slot) => &mut slot.state,
            None => unreachable!("it was put there, and a key names a state of one type"),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_lent<M: Stateful>(&mut self, key: &StateKey<M>, thread: usize) -> usize {
        let held = Known::new(self.take(key, thread));
        self.lent.push(BorrowedState { slot: key.slot, held });
        self.lent.len() - 1
    }

    /// The chain is through with its frame.
    #[inline(always)]
    pub(crate) fn return_lent(&mut self) {
        if !self.lent.is_empty() {
            self.return_all();
        }
    }

    #[inline(never)]
    fn return_all(&mut self) {
        while let Some(BorrowedState { slot, held }) = self.lent.pop() {
            self.give_back(slot, held.into_box());
        }
    }

    /// Asks a state when it is due.
    fn set(&mut self, slot: usize) {
        let place = self.places.get(slot).and_then(Option::as_ref);
        let Some((held, set)) = place.and_then(|p| Some((p.held.as_ref()?, p.due))) else { return };
        let due = held.due();
        if due < set {
            self.set_timer(slot, due);
        }
    }

    /// A state is due earlier than its timer is set to. One that is due later leaves its timer alone: it is asked when
    /// the timer goes off.
    #[cold]
    fn set_timer(&mut self, slot: usize, due: Time) {
        let Some(place) = self.places.get_mut(slot).and_then(Option::as_mut) else { return };
        // Never before it is due.
        let tick = due.0.div_ceil(1 << TICK);
        if !place.timer.is_some_and(|timer| self.timer.restart(timer, tick)) {
            // There are fewer states than timers.
            place.timer = self.timer.insert(tick, slot).ok();
        }
        place.due = due;
        self.next = self.next.min(due);
    }

    /// Whether a state may have something to do.
    #[inline(always)]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// When a thread that sleeps has to wake.
    pub(crate) fn next(&self) -> Option<Time> {
        (self.next != NEVER).then_some(self.next)
    }

    /// Looks which states are due.
    fn advance(&mut self, now: Time) -> Vec<usize> {
        let mut fired = std::mem::take(&mut self.fired);
        self.timer.advance(now.0 >> TICK, |slot| fired.push(slot));
        for slot in &fired {
            if let Some(place) = self.places.get_mut(*slot).and_then(Option::as_mut) {
                (place.due, place.timer) = (NEVER, None);
            }
        }
        fired
    }

    /// After everything that was due: when there is more.
    fn rest(&mut self, mut fired: Vec<usize>) {
        fired.clear();
        self.fired = fired;
        let tick = self.timer.next_event();
        self.next = tick.map_or(NEVER, |tick| Time(tick.saturating_mul(1 << TICK)));
    }

    /// A state, with the node it runs as.
    fn lend(&mut self, slot: usize) -> Option<(Box<dyn AnyState>, NodeIndex)> {
        let place = self.places.get_mut(slot)?.as_mut()?;
        Some((place.held.take()?, place.node))
    }

    fn give_back(&mut self, slot: usize, held: Box<dyn AnyState>) {
        if let Some(place) = self.places.get_mut(slot).and_then(Option::as_mut) {
            place.held = Some(held);
            self.set(slot);
        }
    }

    /// Takes out of each state what belongs elsewhere: its slot and where it goes.
    pub(crate) fn reshard(&mut self, here: usize, workers: &[usize]) -> Vec<Share> {
        let mut all = Vec::new();
        for slot in 0..self.places.len() {
            let Some((mut held, node)) = self.lend(slot) else { continue };
            let shares = held.reshard(here, workers);
            all.extend(shares.into_iter().map(|(to, held)| Share { slot, node, to, held }));
            self.give_back(slot, held);
        }
        all
    }

    /// Gives up all states of a thread that ends.
    pub(crate) fn give_up(&mut self, workers: &[usize]) -> Vec<Share> {
        let places = std::mem::take(self).places;
        let places = places.into_iter().enumerate().filter_map(|(slot, place)| Some((slot, place?)));
        let shares = places.filter_map(|(slot, Place { held, node, .. })| {
            let shares = held?.give_up(workers).into_iter();
            Some(shares.map(move |(to, held)| Share { slot, node, to, held }))
        });
        shares.flatten().collect()
    }
}

/// Part of a state on its way to another thread.
pub(crate) struct Share {
    slot: usize,
    node: NodeIndex,
    pub(crate) to: usize,
    held: Box<dyn AnyState>,
}

impl Lane {
    /// Runs what is due; tells whether anything was.
    #[cold]
    pub(crate) fn expire(&mut self, topology: &Topology, guard: shoal_infra::Guard<'_>) -> bool {
        let now = self.now;
        let fired = self.states.get_mut().advance(now);
        let mut any = false;
        for slot in fired.iter().copied() {
            let Some((mut held, node)) = self.states.get_mut().lend(slot) else { continue };
            // The timer was not moved when the state's work was put off.
            if held.due() <= now
                && let Some(entry) = topology.nodes.get(node.at())
            {
                any = true;
                let before = crate::clock::tsc();
                self.ledger.begin(entry);
                if self.monitor.is_on {
                    self.monitor_before(entry, None);
                }
                held.expire(&mut FrameCx { lane: &mut *self, entry, topology, guard });
                let clocks = crate::clock::tsc().wrapping_sub(before);
                self.counters.calls.add(self.thread, node.at(), 1);
                self.counters.clocks.add(self.thread, node.at(), clocks);
                if self.monitor.is_on {
                    self.monitor_after(entry, 0);
                }
                self.ledger.ended(node, clocks, 0);
            }
            self.states.get_mut().give_back(slot, held);
        }
        self.states.get_mut().rest(fired);
        any
    }

    /// Takes in part of a state of another thread.
    pub(crate) fn adopt(&mut self, share: Share, topology: &Topology, guard: shoal_infra::Guard<'_>) {
        let Share { slot, node, held: other, .. } = share;
        let Some((mut held, _)) = self.states.get_mut().lend(slot) else {
            // The thread has made none yet.
            return self
                .states
                .get_mut()
                .enter(slot, Place { held: Some(other), node, due: NEVER, timer: None });
        };
        if let Some(entry) = topology.nodes.get(node.at()) {
            self.ledger.begin(entry);
            held.adopt(other, &mut FrameCx { lane: &mut *self, entry, topology, guard });
        }
        self.states.get_mut().give_back(slot, held);
    }

    /// Shows a feature's state to the control plane.
    pub(crate) fn with_state<M: Stateful, R>(
        &mut self,
        key: &StateKey<M>,
        look: impl FnOnce(&M, &mut M::State) -> R,
    ) -> R {
        let mut slot = self.states.get_mut().take(key, self.thread);
        let Slot { feature, state } = &mut *slot;
        let answer = look(feature, state);
        self.states.get_mut().put(key, slot);
        answer
    }
}
