//! The same of any store of sessions: how the main thread asks threads, and what they answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use shoal_buffer::SwIfIndex;
use shoal_graph::clock::Time;
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_graph::{Graph, StateKey};

use super::feature::{Authority, Counts, Lost, Misfit, Op, Role, SyncedFeature};
use super::ring::{Bell, RingReceiver, RingShared, Told, ring};
use super::store::{Places, SyncedStore, WalkStep, catch_up, look, sweep, walk};
use crate::SessionStores;

/// Places looked at in one go: packets wait meanwhile, some hundred microseconds if all are reported.
pub(super) const PLACES: u32 = 1024;
/// How often a thread is asked to walk on otherwise: so often in a second.
const PARTS: u32 = 50;
const PACE: u64 = 1_000_000_000 / PARTS as u64;
/// A thread is not asked to catch up for room of fewer events.
const WORTH: usize = 64;
/// Batches that threads may have to take in.
const BATCHES: usize = 64;
/// Refused sessions that are named.
const NAMED: usize = 64;

/// What the control plane of a kind of NAT adds.
pub trait SyncControl<S: SyncedStore>: 'static {
    /// Whether it is on.
    fn is_on(&self) -> bool;

    /// Whether it may begin sessions.
    fn set_standby(&self, standby: bool);

    /// Addresses for which the router answers on a link, while it forwards.
    fn answers(&self) -> Vec<(SwIfIndex, Ipv4Addr)>;

    /// Writes a session as it goes to the other router, in at most 64 bytes.
    fn encode(&self, record: &S::Synced, to: &mut Vec<u8>);

    /// Reads what the other router wrote. A session is taken for younger by `forgiven` seconds.
    ///
    /// # Errors
    /// It is no session, or does not fit the configuration of this router.
    fn decode(&self, bytes: &[u8], forgiven: u32) -> Result<S::Synced, Misfit>;

    /// What an operator reads of a session that was not understood, or does not fit.
    fn name(bytes: &[u8]) -> String;

    /// The thread that both directions of a session come to; `None`: they come to two.
    fn owner(&self, record: &S::Synced) -> Option<usize>;

    /// What an operator reads of a session.
    fn text(&self, record: &S::Synced) -> String;
}

/// A walk that tells of all sessions.
struct Walk {
    number: u32,
    /// Threads that have not come to the end.
    waits_for: BTreeSet<usize>,
}

/// How far the sweep of a thread is.
#[derive(Default)]
struct Progress {
    is_asked: AtomicBool,
    is_done: AtomicBool,
}

struct State<S: SyncedStore> {
    role: Role,
    bell: Option<Arc<Bell>>,
    /// Whether the NAT was on when threads got their rings.
    was_on: bool,
    rings: BTreeMap<usize, RingReceiver<S::Synced>>,
    walks: u32,
    all: Option<Walk>,
    next_look: Time,
    sweeps: BTreeMap<usize, Arc<Progress>>,
    batches: BTreeMap<usize, Vec<(Op, S::Synced)>>,
    lost: Lost,
    refused: Vec<String>,
}

/// A kind of NAT whose sessions are in stores of threads.
pub struct Synced<S: SyncedStore, C> {
    number: u8,
    name: &'static str,
    graph: Rc<Graph>,
    key: StateKey<SessionStores<S>>,
    control: Weak<C>,
    state: RefCell<State<S>>,
    counts: Arc<Counts>,
    in_flight: Arc<AtomicUsize>,
    refuse: Sender<(S::Synced, Misfit)>,
    refused: Receiver<(S::Synced, Misfit)>,
}

impl<S: SyncedStore, C: SyncControl<S>> Synced<S, C> {
    /// As the control plane of the feature makes it; `number` is the feature's in datagrams.
    pub fn new(
        (number, name): (u8, &'static str),
        graph: Rc<Graph>,
        key: StateKey<SessionStores<S>>,
        control: &Rc<C>,
    ) -> Self {
        let (refuse, refused) = channel(NAMED);
        let state = State {
            role: Role::Alone,
            bell: None,
            was_on: false,
            rings: BTreeMap::new(),
            walks: 0,
            all: None,
            next_look: Time(0),
            sweeps: BTreeMap::new(),
            batches: BTreeMap::new(),
            lost: Lost::default(),
            refused: Vec::new(),
        };
        let (counts, in_flight) = (Arc::default(), Arc::default());
        let (control, state) = (Rc::downgrade(control), RefCell::new(state));
        Synced { number, name, graph, key, control, state, counts, in_flight, refuse, refused }
    }

    /// Gives threads their rings, or takes them away.
    fn connect(&self) {
        let mut state = self.state.borrow_mut();
        state.was_on = self.is_on();
        let bell = state.bell.clone().filter(|_| state.role == Role::Active);
        state.rings.clear();
        let threads = self.key.feature().workers();
        let senders = threads.into_iter().map(|thread| {
            let of_thread = bell.as_ref().map(|bell| {
                let (sender, receiver) = ring(Arc::clone(bell));
                state.rings.insert(thread, receiver);
                sender
            });
            (thread, of_thread)
        });
        let senders: Vec<_> = senders.collect();
        drop(state);
        for (thread, sender) in senders {
            if let Err(e) = self.graph.on_state(&self.key, thread, move |stores, sessions| {
                let most = sessions.most_places(stores.shared());
                sessions.tap().set(sender, most);
            }) {
                tracing::warn!(thread, "it does not tell of its sessions ({}): {e}", self.name);
            }
        }
    }

    /// Has a thread do something, and does not wait for it.
    fn tell(&self, thread: usize, job: impl FnOnce(&SessionStores<S>, &mut S) + Send + 'static) -> bool {
        let told = self.graph.tell_state(&self.key, thread, job);
        told.inspect_err(|e| tracing::debug!(thread, "{}: {e}", self.name)).is_ok()
    }

    fn refuse(&self, name: impl FnOnce() -> String, why: Misfit) {
        self.counts.refuse(why);
        let mut state = self.state.borrow_mut();
        if state.refused.len() < NAMED {
            state.refused.push(format!("{}: {why}", name()));
        }
    }

    fn ask_to_walk(&self, thread: usize, ring: &Arc<RingShared>, step: WalkStep, now: Time) {
        if !ring.ask() {
            return;
        }
        let of_thread = Arc::clone(ring);
        let told = self.tell(thread, move |_, sessions| {
            let room = sessions.tap().room();
            catch_up(sessions, room, now);
            of_thread.set_behind(look(sessions, now));
            walk(sessions, step, now);
            of_thread.done();
        });
        if !told {
            ring.done();
        }
    }

    /// Has a thread do something that is counted as work under way until it is done.
    fn give(&self, thread: usize, job: impl FnOnce(&SessionStores<S>, &mut S) + Send + 'static) {
        let Some(bell) = self.state.borrow().bell.clone() else { return };
        let in_flight = Arc::clone(&self.in_flight);
        in_flight.fetch_add(1, Ordering::AcqRel);
        let is_told = self.tell(thread, move |stores, sessions| {
            job(stores, sessions);
            sessions.count(stores.shared(), thread);
            in_flight.fetch_sub(1, Ordering::AcqRel);
            bell.ring();
        });
        if !is_told {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Sweeps on; whether there is more.
    fn sweep(&self) -> bool {
        self.state.borrow_mut().sweeps.retain(|_, sweep| !sweep.is_done.load(Ordering::Acquire));
        let sweeps = self.state.borrow().sweeps.clone();
        for (thread, progress) in &sweeps {
            if progress.is_asked.swap(true, Ordering::AcqRel) {
                continue;
            }
            let (counts, progress) = (Arc::clone(&self.counts), Arc::clone(progress));
            self.give(*thread, move |_, sessions| {
                let mut ended = 0;
                let is_done = sweep(sessions, PLACES, &mut ended);
                counts.swept.fetch_add(ended, Ordering::Relaxed);
                progress.is_done.store(is_done, Ordering::Release);
                progress.is_asked.store(false, Ordering::Release);
            });
        }
        !sweeps.is_empty()
    }

    fn stop_sweeping(&self) {
        self.state.borrow_mut().sweeps.clear();
        for thread in self.key.feature().workers() {
            self.tell(thread, |_, sessions| {
                let tap = sessions.tap();
                (tap.named, tap.sweep) = (None, 0);
            });
        }
    }
}

/// Takes in what the other router says, on the thread that has the sessions.
fn take_in<S: SyncedStore>(
    (shared, sessions): (&S::Shared, &mut S),
    batch: Vec<(Op, S::Synced)>,
    (authority, now): (Authority, Time),
    counts: &Counts,
    refuse: &Sender<(S::Synced, Misfit)>,
) {
    let (mut entered, mut renewed, mut replaced, mut left) = (0, 0, 0, 0);
    for (op, record) in batch {
        if op == Op::Gone {
            left += u64::from(sessions.leave(&record));
            continue;
        }
        match sessions.enter(&record, authority, shared, now) {
            Ok(done) => {
                *(if done.is_new { &mut entered } else { &mut renewed }) += 1;
                replaced += u64::from(done.replaced);
                sessions.tap().name(done.place);
            }
            Err(why) => {
                counts.refuse(why);
                // Of many a few are named.
                let _ = refuse.try_send((record, why));
            }
        }
    }
    for (counter, count) in [
        (&counts.entered, entered),
        (&counts.renewed, renewed),
        (&counts.replaced, replaced),
        (&counts.left, left),
    ] {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl<S: SyncedStore, C: SyncControl<S>> SyncedFeature for Synced<S, C> {
    fn number(&self) -> u8 {
        self.number
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn is_on(&self) -> bool {
        self.control.upgrade().is_some_and(|control| control.is_on())
    }

    fn set_role(&self, role: Role, bell: &Arc<Bell>) {
        let mut state = self.state.borrow_mut();
        (state.role, state.bell, state.all) = (role, Some(Arc::clone(bell)), None);
        drop(state);
        if let Some(control) = self.control.upgrade() {
            control.set_standby(role == Role::Standby);
        }
        self.connect();
        self.stop_sweeping();
    }

    fn answers(&self) -> Vec<(SwIfIndex, Ipv4Addr)> {
        self.control.upgrade().map(|control| control.answers()).unwrap_or_default()
    }

    fn take(&self, most: usize, each: &mut dyn FnMut(Op, &[u8])) -> bool {
        let Some(control) = self.control.upgrade() else { return false };
        let (mut bytes, mut left) = (Vec::new(), most);
        let mut state = self.state.borrow_mut();
        let State { rings, all, .. } = &mut *state;
        for (thread, ring) in rings {
            while left > 0 {
                let (op, record) = match ring.take() {
                    Some(Told::Put(record)) => (Op::Put, record),
                    Some(Told::Gone(record)) => (Op::Gone, record),
                    Some(Told::Walked(number)) => {
                        if let Some(all) = all.as_mut().filter(|all| all.number == number) {
                            all.waits_for.remove(thread);
                        }
                        continue;
                    }
                    None => break,
                };
                bytes.clear();
                control.encode(&record, &mut bytes);
                each(op, &bytes);
                left -= 1;
            }
        }
        let is_over = state.all.as_ref().is_some_and(|all| all.waits_for.is_empty());
        if is_over {
            state.all = None;
        }
        is_over
    }

    fn waits(&self) -> bool {
        self.state.borrow().rings.values().any(|ring| !ring.is_empty())
    }

    fn tell_all(&self) {
        let mut state = self.state.borrow_mut();
        state.walks = state.walks.wrapping_add(1).max(1);
        let (number, waits_for) = (state.walks, state.rings.keys().copied().collect());
        state.all = Some(Walk { number, waits_for });
    }

    fn work(&self, refresh: u32, now: Time) -> bool {
        let sweeps = self.sweep();
        let mut state = self.state.borrow_mut();
        let of_all = state.all.as_ref().map(|all| (all.number, all.waits_for.clone()));
        let is_time = now >= state.next_look;
        if is_time {
            state.next_look = Time(now.0 + PACE);
        }
        let room = |(thread, ring): (&usize, &RingReceiver<S::Synced>)| {
            (*thread, Arc::clone(ring.shared()), ring.room())
        };
        let (rings, walk) = (state.rings.iter().map(room).collect::<Vec<_>>(), state.walks);
        drop(state);
        for &(ref thread, ref ring, room) in &rings {
            let is_late = (ring.is_late() || ring.is_behind()) && room >= WORTH;
            match &of_all {
                Some((number, waits_for)) => {
                    // A thread that has told of all looks at new ones now and then.
                    let most = if waits_for.contains(thread) { room } else { 0 };
                    if most > 0 || is_time || is_late {
                        let step =
                            WalkStep { walk: *number, refresh: None, places: Places::Some(PLACES), most };
                        self.ask_to_walk(*thread, ring, step, now);
                    }
                }
                None if is_time || is_late => {
                    // A share of the places that has seen them all after `refresh` seconds.
                    let parts = refresh.max(1).saturating_mul(PARTS);
                    let places = Places::Part(parts);
                    let step = WalkStep { walk, refresh: Some(refresh), places, most: room };
                    self.ask_to_walk(*thread, ring, step, now);
                }
                None => {}
            }
        }
        sweeps || of_all.is_some() || rings.iter().any(|(_, ring, _)| ring.is_late() || ring.is_behind())
    }

    fn take_lost(&self) -> Lost {
        let workers: BTreeSet<usize> = self.key.feature().workers().into_iter().collect();
        let state = self.state.borrow();
        // Workers have come or gone, or the NAT was switched on: its sessions are as many as it was then told.
        let has_others = state.role == Role::Active
            && (state.was_on != self.is_on() || !state.rings.keys().copied().eq(workers.iter().copied()));
        drop(state);
        if has_others {
            self.connect();
            self.state.borrow_mut().lost = Lost::default();
            return Lost { has_other_workers: true, ..Lost::default() };
        }
        let mut state = self.state.borrow_mut();
        let all = state.rings.values().map(|ring| ring.shared().missed());
        let (ends, late) = all.fold((0, 0), |(ends, late), more| (ends + more.0, late + more.1));
        let before = std::mem::replace(&mut state.lost, Lost { ends, late, has_other_workers: false });
        let (ends, late) = (ends.saturating_sub(before.ends), late.saturating_sub(before.late));
        Lost { ends, late, has_other_workers: false }
    }

    fn put(&self, op: Op, bytes: &[u8], forgiven: u32) {
        let Some(control) = self.control.upgrade() else { return };
        if !control.is_on() {
            // None of them fits: there is no need to name each.
            return self.counts.refuse(Misfit::Off);
        }
        let record = match control.decode(bytes, forgiven) {
            Ok(record) => record,
            Err(_) if op == Op::Gone => return,
            Err(why) => return self.refuse(|| C::name(bytes), why),
        };
        let Some(thread) = control.owner(&record) else {
            return self.refuse(|| control.text(&record), Misfit::Workers);
        };
        self.state.borrow_mut().batches.entry(thread).or_default().push((op, record));
    }

    fn flush(&self, now: Time) {
        let batches = std::mem::take(&mut self.state.borrow_mut().batches);
        let authority =
            if self.state.borrow().role == Role::Standby { Authority::Theirs } else { Authority::Ours };
        for (thread, batch) in batches {
            let (counts, refuse) = (Arc::clone(&self.counts), self.refuse.clone());
            self.give(thread, move |stores, sessions| {
                take_in((stores.shared(), sessions), batch, (authority, now), &counts, &refuse);
            });
        }
    }

    fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) >= BATCHES
    }

    fn begin_all(&self) {
        self.state.borrow_mut().sweeps.clear();
        if self.state.borrow().role != Role::Standby {
            return;
        }
        for thread in self.key.feature().workers() {
            self.give(thread, |_, sessions| {
                let words = sessions.places() as usize / 64 + 1;
                let tap = sessions.tap();
                (tap.named, tap.sweep) = (Some(vec![0; words]), 0);
            });
        }
    }

    fn end_all(&self) {
        if self.state.borrow().role != Role::Standby {
            return;
        }
        let sweeps = self.key.feature().workers().into_iter().map(|thread| (thread, Arc::default()));
        self.state.borrow_mut().sweeps = sweeps.collect();
        self.sweep();
    }

    fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    fn take_refused(&self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.state.borrow_mut().refused);
        if let Some(control) = self.control.upgrade() {
            while let Ok((record, why)) = self.refused.try_recv() {
                all.push(format!("{}: {why}", control.text(&record)));
            }
        }
        all
    }
}
