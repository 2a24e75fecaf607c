//! Path MTUs that errors speak of: bounded in number and in time, and never believed to be more than what is known.
//! RFC 1191, 6; RFC 8201, 4.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use shoal_adj::{AdjKind, Adjacencies, Family};
use shoal_graph::clock::Time;

use super::{Key, Known, PathMtus, is_host};
use crate::PathMtuError;
use crate::node::{Fact, Wanted};

/// Most that are learnt; the one that would be forgotten first makes room for another.
pub const MOST_LEARNT: usize = 4096;

/// Seconds that what was learnt may be believed: RFC 8201, 4 forbids less than five minutes.
const LIFETIMES: std::ops::RangeInclusive<u32> = 300..=86_400;

/// What the least MTU that is believed of an IPv4 path may be: RFC 791, 3.2 to what IPv6 has.
const LEASTS: std::ops::RangeInclusive<u16> = 68..=1280;

/// Whether and how path MTUs are learnt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learning {
    /// Whether errors are believed.
    pub on: bool,
    /// For how long.
    pub lifetime: Duration,
    /// No path of IPv4 is believed to carry less than packets of this length. That of IPv6 is fixed: 1,280.
    pub least: u16,
}

impl Default for Learning {
    fn default() -> Self {
        // RFC 1191, 6.3 and RFC 8201, 4: ten minutes. 552: what Linux does not go below either, so that a forged error
        // does not make many packets of one.
        Learning { on: true, lifetime: Duration::from_mins(10), least: 552 }
    }
}

/// What an error reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learnt {
    /// The longest packet.
    pub mtu: u16,
    /// When it was last reported.
    pub at: Time,
    /// When it is forgotten.
    pub until: Time,
}

/// What is kept besides the path MTUs themselves.
pub(crate) struct State {
    pub(super) learning: Learning,
    wanted: Wanted,
    adjacencies: Rc<Adjacencies>,
    due: BTreeSet<(Time, Key)>,
}

impl State {
    pub(crate) fn new(wanted: Wanted, adjacencies: Rc<Adjacencies>) -> Self {
        State { learning: Learning::default(), wanted, adjacencies, due: BTreeSet::new() }
    }

    /// How many hosts something was learnt of.
    pub(super) fn count(&self) -> usize {
        self.due.len()
    }

    /// What was learnt of a host is to be forgotten at another time.
    pub(super) fn moved(&mut self, key: Key, from: Option<Time>, to: Option<Time>) {
        if let Some(from) = from {
            self.due.remove(&(from, key));
        }
        if let Some(to) = to {
            self.due.insert((to, key));
        }
    }
}

impl PathMtus {
    /// Whether and how path MTUs are learnt.
    pub fn learning(&self) -> Learning {
        self.learning.borrow().learning
    }

    /// How many were learnt.
    pub fn learnt(&self) -> usize {
        self.learning.borrow().count()
    }

    /// Says whether and how path MTUs are learnt. What was learnt is forgotten when nothing is believed any more; another
    /// lifetime is for what is learnt from now on.
    ///
    /// # Errors
    /// A lifetime or a least MTU that is out of range; nothing is changed then.
    pub fn set_learning(&self, new: Learning) -> Result<(), PathMtuError> {
        let seconds = u32::try_from(new.lifetime.as_secs()).unwrap_or(u32::MAX);
        if !LIFETIMES.contains(&seconds) {
            let nearest = seconds.clamp(*LIFETIMES.start(), *LIFETIMES.end());
            return Err(PathMtuError::Lifetime { seconds, nearest });
        }
        if !LEASTS.contains(&new.least) {
            let nearest = new.least.clamp(*LEASTS.start(), *LEASTS.end());
            return Err(PathMtuError::Least { least: new.least, nearest });
        }
        {
            let mut state = self.learning.borrow_mut();
            state.learning = new;
            state.wanted.set(new);
        }
        if new.on { Ok(()) } else { self.forget_until(Time(u64::MAX)) }
    }

    /// An error that a node found in order. Whether it is believed is decided by what is known of the way: no error makes
    /// a packet longer than it was (RFC 1191, 6.1; RFC 8201, 4), and none concerns a host to which there is no way.
    pub(crate) fn learn(&self, fact: Fact) {
        let Fact { fib, peer, mtu } = fact;
        let learning = self.learning();
        let Ok(table) = self.fib.id_of(Family::of(peer), fib) else { return };
        if !learning.on || !is_host(peer) {
            return;
        }
        let (key, now) = ((table, peer), self.now());
        let known = self.known(key, fib);
        let bound = known.and_then(|k| k.mtu()).or_else(|| self.way_carries(fact));
        let again = known.and_then(|k| k.learnt).is_some_and(|l| l.mtu == mtu);
        if !bound.is_some_and(|bound| mtu < bound || (again && mtu == bound)) {
            return;
        }
        if known.is_none_or(|k| k.learnt.is_none()) && self.learnt() >= MOST_LEARNT {
            let _ = self.forget_first();
        }
        let learnt = Learnt { mtu, at: now, until: now.after(learning.lifetime) };
        let new = Known { fib, said: known.and_then(|k| k.said), learnt: Some(learnt) };
        if let Err(e) = self.write(key, new) {
            tracing::warn!("path MTU {mtu} to {peer} in table {table} not learnt: {e}");
        }
    }

    /// What the first link of the way to a host carries, if there is a way.
    fn way_carries(&self, Fact { fib, peer, .. }: Fact) -> Option<u16> {
        let adj = self.learning.borrow().adjacencies.get(self.fib.lookup(fib, peer));
        match adj.kind() {
            AdjKind::Rewrite | AdjKind::Glean if adj.mtu > 0 => Some(adj.mtu),
            // One that is not known yet, or one of several.
            AdjKind::Rewrite | AdjKind::Glean | AdjKind::Incomplete | AdjKind::Balance | AdjKind::Lookup => {
                Some(u16::MAX)
            }
            _ => None,
        }
    }

    /// When something is to be forgotten.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.learning.borrow().due.first().map(|(until, _)| *until)
    }

    /// Forgets what was learnt too long ago.
    pub(crate) fn tick(&self) {
        if let Err(e) = self.forget_until(self.now()) {
            tracing::warn!("a path MTU stays: {e}");
        }
    }

    fn forget_until(&self, time: Time) -> Result<(), PathMtuError> {
        while self.deadline().is_some_and(|due| due <= time) {
            if let Some(Err(e)) = self.forget_first() {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Forgets what would be forgotten first.
    fn forget_first(&self) -> Option<Result<(), PathMtuError>> {
        let (until, key) = self.learning.borrow_mut().due.pop_first()?;
        let known = self.all.borrow().get(&key).copied()?;
        let done = self.write(key, Known { learnt: None, ..known });
        if done.is_err() {
            // It is still there, so it is tried again, but not at once.
            let later = until.max(self.now()).after(Duration::from_secs(1));
            self.learning.borrow_mut().due.insert((later, key));
            if let Some(known) = self.all.borrow_mut().get_mut(&key)
                && let Some(learnt) = known.learnt.as_mut()
            {
                learnt.until = later;
            }
        }
        Some(done)
    }
}
