//! Next hops that do not answer: routes with other ways avoid them until they are heard of.
//!
//! No packets go to a next hop that is avoided, so traffic cannot show that it is back. It is asked from time to time
//! as long as a route names it; what it says by itself counts as well.

use std::time::Duration;

use shoal_fib::Reach;
use shoal_graph::clock::Time;

use super::Neighbours;
use crate::Protocol;
use crate::table::Key;

/// How soon such a next hop is asked again.
const AGAIN: Duration = Duration::from_secs(5);

impl<P: Protocol> Neighbours<P> {
    /// Whether routes avoid a next hop.
    pub fn is_dead(&self, key: Key<P::Addr>) -> bool {
        self.dead.borrow().contains_key(&key)
    }

    /// Routes with other ways avoid a next hop from now on: one store for each of their path lists, or one for each
    /// bucket that moves, whatever the number of prefixes.
    pub(super) fn avoid(&self, key: Key<P::Addr>) {
        let next = self.graph.clock().now().after(AGAIN);
        if self.dead.borrow_mut().insert(key, next).is_none() {
            self.fib.set_next_hop(key.0, key.1.into(), Reach::Down);
            self.tell(key, "does not answer, routes with other ways avoid it");
        }
        self.ring();
    }

    /// A next hop is heard of, or somebody wants it to be tried.
    pub(super) fn revive(&self, key: Key<P::Addr>) {
        let was_dead = self.dead.borrow_mut().remove(&key).is_some();
        if was_dead {
            self.fib.set_next_hop(key.0, key.1.into(), Reach::Up);
            self.tell(key, "is used again");
        }
    }

    pub(super) fn revive_all(&self, which: impl Fn(Key<P::Addr>) -> bool) {
        let keys: Vec<Key<P::Addr>> = self.dead.borrow().keys().copied().filter(|k| which(*k)).collect();
        for key in keys {
            self.revive(key);
        }
    }

    fn tell(&self, (interface, address): Key<P::Addr>, what: &str) {
        let text = format!("{}: next hop {address} {what}", self.name(interface));
        tracing::info!("{text}");
        self.graph.events().write(0, text);
    }

    pub(super) fn dead_deadline(&self) -> Option<Time> {
        self.dead.borrow().values().min().copied()
    }

    pub(super) fn ask_the_dead(&self, now: Time) {
        let due: Vec<Key<P::Addr>> =
            self.dead.borrow().iter().filter(|(_, next)| **next <= now).map(|(key, _)| *key).collect();
        for key in due {
            if !self.fib.has_choice(key.0, key.1.into()) {
                self.revive(key);
                continue;
            }
            if let Some(next) = self.dead.borrow_mut().get_mut(&key) {
                *next = now.after(AGAIN);
            }
            let source = self.protocol.source_for(key);
            self.ask_everybody(key, source);
        }
    }
}
