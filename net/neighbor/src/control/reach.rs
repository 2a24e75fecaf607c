//! Neighbour unreachability detection: how sure it is that a neighbour is still there. RFC 4861 7.3.
//!
//! The data path does not report the neighbours it sends to. So an entry that becomes stale has its adjacency led
//! through the node that asks for neighbours: the first packet that comes there is sent on by a *way*, a second
//! adjacency with the complete rewrite, and tells that the neighbour is in use. Nothing is lost or held, and neighbours
//! without traffic are not probed. Packets of each family that have the neighbour as next hop (RFC 8950) have a way of
//! their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use shoal_adj::{Adj, AdjIndex, AdjKind, Link};
use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;

use super::Neighbours;
use crate::table::{Key, Origin};
use crate::{Address, Protocol};

/// How sure it is that a neighbour is there (RFC 4861 7.3.2). "Incomplete" is a question about a neighbour that is not
/// in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It confirmed lately.
    Reachable,
    /// It has not, and nothing was sent to it since.
    Stale,
    /// Something was sent to it; others may confirm in the meantime.
    Delay,
    /// It is being asked.
    Probe,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Reachable => "reachable",
            State::Stale => "stale",
            State::Delay => "delay",
            State::Probe => "probe",
        })
    }
}

/// The role that a neighbour announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A host, or it did not say.
    #[default]
    Host,
    /// A router.
    Router,
}

struct Entry {
    state: State,
    role: Role,
    due: Option<Time>,
    /// While it is stale: the adjacencies that packets are sent on by, by what they are. Each is made when there is an
    /// adjacency whose packets take it.
    ways: LinkAdjacencies,
}

/// By link.
pub(super) type LinkAdjacencies = [Option<AdjIndex>; Link::COUNT];

/// All neighbours that may be doubted.
pub(super) struct Reach<A> {
    entries: BTreeMap<Key<A>, Entry>,
    due: BTreeSet<(Time, Key<A>)>,
}

impl<A> Default for Reach<A> {
    fn default() -> Self {
        Reach { entries: BTreeMap::new(), due: BTreeSet::new() }
    }
}

impl<A: Address> Reach<A> {
    pub(super) fn state(&self, key: Key<A>) -> Option<State> {
        self.entries.get(&key).map(|e| e.state)
    }

    pub(super) fn role(&self, key: Key<A>) -> Role {
        self.entries.get(&key).map(|e| e.role).unwrap_or_default()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Forgets an entry; what is left are its ways, to be unlocked when packets are led past them.
    pub(super) fn remove(&mut self, key: Key<A>) -> LinkAdjacencies {
        let Some(old) = self.entries.remove(&key) else { return LinkAdjacencies::default() };
        if let Some(due) = old.due {
            self.due.remove(&(due, key));
        }
        old.ways
    }

    /// Enters a state, and what is to be done then; the ways of the old one are left over.
    fn set(&mut self, key: Key<A>, state: State, due: Option<Time>) -> LinkAdjacencies {
        let role = self.role(key);
        let left = self.remove(key);
        if let Some(due) = due {
            self.due.insert((due, key));
        }
        self.entries.insert(key, Entry { state, role, due, ways: LinkAdjacencies::default() });
        left
    }

    fn ways(&self, key: Key<A>) -> LinkAdjacencies {
        self.entries.get(&key).map(|e| e.ways).unwrap_or_default()
    }
}

/// A time between two.
fn random_between((least, most): (Duration, Duration)) -> Duration {
    least + most.saturating_sub(least).mul_f64(fastrand::f64())
}

impl<P: Protocol> Neighbours<P> {
    /// How sure it is that a neighbour is there; `None` when it is not known, or not doubted.
    pub fn state(&self, key: Key<P::Addr>) -> Option<State> {
        self.reach.borrow().state(key)
    }

    /// The role that a neighbour announced.
    pub fn role(&self, key: Key<P::Addr>) -> Role {
        self.reach.borrow().role(key)
    }

    /// Notes what a neighbour says it is.
    pub fn set_role(&self, key: Key<P::Addr>, role: Role) {
        if let Some(entry) = self.reach.borrow_mut().entries.get_mut(&key) {
            entry.role = role;
        }
    }

    /// A neighbour that is known is in a state from now on. Static ones are not doubted, nor those on a link without
    /// stations that could confirm.
    pub fn doubt(&self, key: Key<P::Addr>, state: State) {
        let Some(timing) = P::TIMING.filter(|_| self.interfaces.has_stations(key.0)) else { return };
        if self.table.borrow().get(key).is_none_or(|n| n.origin == Origin::Static) {
            return;
        }
        let now = self.graph.clock().now();
        let due = match state {
            State::Reachable => Some(now.after(random_between(timing.reachable))),
            State::Delay => Some(now.after(timing.delay)),
            State::Stale | State::Probe => None,
        };
        let was = self.state(key);
        if state == State::Stale && was == Some(State::Stale) {
            return self.renew_ways_of(key);
        }
        let left = self.reach.borrow_mut().set(key, state, due);
        if state == State::Stale || was == Some(State::Stale) {
            self.adjacencies.refresh_neighbour(key.0, key.1.into());
        }
        self.unlock_ways(left);
        if due.is_some() {
            self.ring();
        }
    }

    /// A neighbour is doubted no longer: the operator answers for it.
    pub(super) fn trust(&self, key: Key<P::Addr>) {
        let was = self.state(key);
        let left = self.reach.borrow_mut().remove(key);
        if was == Some(State::Stale) {
            self.adjacencies.refresh_neighbour(key.0, key.1.into());
        }
        self.unlock_ways(left);
    }

    pub(super) fn unlock_ways(&self, ways: LinkAdjacencies) {
        for way in ways.into_iter().flatten() {
            self.adjacencies.unlock(way);
        }
    }

    /// Something is sent to a neighbour. RFC 4861 7.3.3: a stale one has a while to be confirmed by others.
    pub fn used(&self, key: Key<P::Addr>) {
        if self.state(key) == Some(State::Stale) {
            self.doubt(key, State::Delay);
        }
    }

    /// The adjacency that packets to a stale neighbour are sent by. Without one the control plane does not learn that
    /// they are sent, and the neighbour is not probed.
    fn way(&self, key: Key<P::Addr>, link: Link) -> Option<AdjIndex> {
        let known = self.reach.borrow().ways(key).get(link as usize).copied().flatten();
        if known.is_some() {
            return known;
        }
        let adj = self.complete(key, link)?.with_link(link).with_address(key.1.into());
        let way = self.adjacencies.create_fixed(adj).ok()?;
        let mut reach = self.reach.borrow_mut();
        let place = reach.entries.get_mut(&key).and_then(|e| e.ways.get_mut(link as usize));
        match place {
            Some(place) => *place = Some(way),
            None => unreachable!("a stale neighbour has an entry"),
        }
        Some(way)
    }

    fn renew_ways_of(&self, key: Key<P::Addr>) {
        let ways = self.reach.borrow().ways(key);
        for (link, way) in [Link::Ip4, Link::Ip6].into_iter().zip(ways) {
            if let (Some(way), Some(adj)) = (way, self.complete(key, link)) {
                self.adjacencies.set_fixed(way, adj.with_link(link).with_address(key.1.into()));
            }
        }
    }

    /// An interface has another address or MTU: what is sent to stale neighbours has it, too.
    pub(super) fn renew_ways(&self, interface: SwIfIndex) {
        let mine: Vec<_> = self.reach.borrow().entries.keys().copied().filter(|k| k.0 == interface).collect();
        for key in mine {
            self.renew_ways_of(key);
        }
    }

    /// The line of a stale neighbour's adjacency: to the node that asks, with the way to send by.
    pub(super) fn describe_stale(&self, key: Key<P::Addr>, link: Link, mtu: u16) -> Option<Adj> {
        if self.state(key) != Some(State::Stale) {
            return None;
        }
        let edge = self.adjacencies.edge_to_asker(link, self.protocol.asker()?).ok()?;
        let way = self.way(key, link)?;
        Some(Adj::on(AdjKind::Incomplete, key.0, mtu).with_rewrite(&way.0.to_be_bytes(), edge))
    }

    /// Does what is due: confirmations grow old, waiting ends.
    pub(super) fn doubt_due(&self, now: Time) {
        loop {
            let first = self.reach.borrow().due.first().copied();
            let Some((due, key)) = first.filter(|(due, _)| *due <= now) else { return };
            self.reach.borrow_mut().due.remove(&(due, key));
            match self.state(key) {
                Some(State::Reachable) => self.doubt(key, State::Stale),
                _ => self.probe(key, now),
            }
        }
    }
}
