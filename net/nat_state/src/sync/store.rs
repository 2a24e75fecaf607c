//! What is done to the sessions of one thread, on that thread, between two rounds.

use shoal_graph::clock::Time;

use super::feature::{Authority, Misfit};
use super::synced::PLACES;
use super::tap::Tap;
use crate::SessionStore;

/// Sessions that have begun, looked at in one go.
const LOOKS: usize = 1024;
/// Places of a walk that refreshes, looked at in one go, at least.
const LEAST: u32 = 64;
/// Seconds that a session may be silent for longer than the time between two walks, and is reported.
const SLACK: u32 = 5;

/// A session that the other router may have to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate<R> {
    /// Its number.
    pub place: u32,
    /// What it is.
    pub record: R,
    /// Whether it had more than its first packet.
    pub is_answered: bool,
    /// Seconds since its last packet.
    pub idle: u32,
}

/// Sessions of one thread that another router can know.
pub trait SyncedStore: SessionStore {
    /// A session as it is told.
    type Synced: Clone + Send + 'static;

    /// What the thread tells by.
    fn tap(&mut self) -> &mut Tap<Self::Synced>;

    /// Numbers of sessions are below this.
    fn places(&self) -> u32;

    /// They never will be more.
    fn most_places(&self, shared: &Self::Shared) -> u32;

    /// The session of this number, if there is one that the other router may have to know.
    fn at(&self, place: u32, now: Time) -> Option<Candidate<Self::Synced>>;

    /// The session of a handle that was given to [`Tap::began`], if it is still there.
    fn of_handle(&self, handle: u64, now: Time) -> Option<Candidate<Self::Synced>>;

    /// Makes a session as the other router has it, or renews it; its number.
    ///
    /// # Errors
    /// One of its tuples is another's, or there is no room.
    fn enter(
        &mut self,
        record: &Self::Synced,
        authority: Authority,
        shared: &Self::Shared,
        now: Time,
    ) -> Result<Entered, Misfit>;

    /// Ends a session that the other router has ended; whether there was one.
    fn leave(&mut self, record: &Self::Synced) -> bool;

    /// Ends the session of this number.
    fn end_at(&mut self, place: u32) -> bool;
}

/// What became of a session that the other router has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    /// Its number.
    pub place: u32,
    /// Whether it was not here before.
    pub is_new: bool,
    /// Sessions of this router that had to go for it.
    pub replaced: u32,
}

/// How many places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Places {
    /// So many.
    Some(u32),
    /// So small a part of all.
    Part(u32),
}

/// A part of a walk over all places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WalkStep {
    /// The walk's number: another number begins at the first place.
    pub walk: u32,
    /// Only of sessions that were used in the last so many seconds; another walk begins after as many.
    pub refresh: Option<u32>,
    /// Places that are looked at.
    pub places: Places,
    /// Sessions that are reported.
    pub most: usize,
}

/// Looks at sessions that have begun not long ago; whether there may be more.
pub(super) fn look<S: SyncedStore>(sessions: &mut S, now: Time) -> bool {
    for _ in 0..LOOKS {
        let Some((handle, began, is_first)) = sessions.tap().due(now) else { return false };
        match sessions.of_handle(handle, now) {
            Some(candidate) if candidate.is_answered => {
                sessions.tap().put(candidate.place, candidate.record);
            }
            Some(_) if is_first => sessions.tap().look_later(handle, began),
            _ => {}
        }
    }
    true
}

/// Tells of sessions for which there was no room.
pub(super) fn catch_up<S: SyncedStore>(sessions: &mut S, most: usize, now: Time) {
    for place in sessions.tap().take_late(most) {
        // One that has ended since was reported as that, or counted as lost.
        if let Some(candidate) = sessions.at(place, now).filter(|candidate| candidate.is_answered) {
            sessions.tap().put(place, candidate.record);
        }
    }
}

/// Walks on.
pub(super) fn walk<S: SyncedStore>(sessions: &mut S, step: WalkStep, now: Time) {
    let tap = sessions.tap();
    let (walk, mut place) = tap.walk;
    if walk != step.walk {
        place = 0;
    }
    if step.refresh.is_none() && tap.told_all == step.walk {
        return;
    }
    if place == 0 {
        let pause = u64::from(step.refresh.unwrap_or(0)) * 1_000_000_000;
        if now.0.saturating_sub(tap.walk_began.0) < pause {
            return;
        }
        tap.walk_began = now;
    }
    let (all, mut told) = (sessions.places(), 0);
    let places = match step.places {
        Places::Some(places) => places,
        Places::Part(parts) => all.div_ceil(parts.max(1)).clamp(LEAST, PLACES),
    };
    let end = place.saturating_add(places).min(all);
    while place < end && told < step.most {
        let wanted = sessions.at(place, now).filter(|candidate| {
            // Walks do not begin to the second.
            candidate.is_answered && step.refresh.is_none_or(|refresh| candidate.idle <= refresh + SLACK)
        });
        if let Some(candidate) = wanted {
            told += usize::from(sessions.tap().put(place, candidate.record));
        }
        place += 1;
    }
    let tap = sessions.tap();
    tap.walk = (step.walk, place);
    // Without room the end is told the next time.
    if place >= all && told < step.most && tap.walked(step.walk) {
        // One that tells of all sessions is not walked again; one that refreshes begins at the first place again.
        tap.walk.1 = 0;
        if step.refresh.is_none() {
            tap.told_all = step.walk;
        }
    }
}

/// Ends some of the sessions that the other router has not named; whether all places were seen.
pub(super) fn sweep<S: SyncedStore>(sessions: &mut S, places: u32, ended: &mut u64) -> bool {
    let (from, all) = (sessions.tap().sweep, sessions.places());
    if sessions.tap().named.is_none() {
        return true;
    }
    let end = from.saturating_add(places).min(all);
    for place in from..end {
        if !sessions.tap().is_named(place) {
            *ended += u64::from(sessions.end_at(place));
        }
    }
    let tap = sessions.tap();
    tap.sweep = end;
    let is_done = end >= all;
    if is_done {
        (tap.named, tap.sweep) = (None, 0);
    }
    is_done
}
