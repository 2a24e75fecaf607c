//! From a path list to the one thing that forwards.

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv4Addr;

use shoal_adj::{AdjIndex, AdjKind, Link};
use shoal_buffer::SwIfIndex;
use shoal_interface::IfFlags;
use shoal_wire::Ip4Prefix;

use crate::change::State;
use crate::list::{ListId, Tracked};
use crate::{FibError, FibIndex, Via};

/// What a path list resolves to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    NoRoute,
    Special(AdjKind),
    /// No path leads to an interface.
    Unresolved,
    /// The paths lead back to where they come from.
    Loop,
    Lookup(FibIndex),
    Neighbour(SwIfIndex, Ipv4Addr),
    Glean(SwIfIndex, Ipv4Addr),
    Broadcast(SwIfIndex),
}

/// A next hop that somebody looks up.
#[derive(Default)]
pub(crate) struct Tracker {
    /// The longest entry that covers it, and the list that decides there.
    pub cover: Option<(Ip4Prefix, ListId)>,
    /// The lists with a path to it.
    pub users: BTreeSet<ListId>,
}

impl State {
    /// What a list leads to, found anew: its first path that reaches an interface, through any number of other
    /// entries. A depth-first search; a list that was seen before is not entered again, so it ends.
    pub(crate) fn resolve(&self, origin: ListId) -> Target {
        let mut seen = HashSet::from([origin]);
        // Lists on the way, the next path to try of each, and the next hop that led there.
        let mut way: Vec<(ListId, usize, Option<Ipv4Addr>)> = vec![(origin, 0, None)];
        let mut looped = false;
        while let Some((list, next, next_hop)) = way.last_mut() {
            let (id, led_by) = (*list, *next_hop);
            let Some(path) = self.lists.get(id).and_then(|l| l.paths.get(*next)) else {
                way.pop();
                continue;
            };
            *next += 1;
            let Via::Recursive { next_hop, fib } = path.via else {
                if let Some(target) = self.end(path.via, led_by) {
                    return target;
                }
                continue;
            };
            let Some((_, cover)) = self.trackers.get(&(fib, next_hop)).and_then(|t| t.cover) else {
                continue;
            };
            if seen.insert(cover) {
                way.push((cover, 0, Some(next_hop)));
            } else {
                looped |= way.iter().any(|(l, ..)| *l == cover);
            }
        }
        if looped { Target::Loop } else { Target::Unresolved }
    }

    /// What a path that is not recursive leads to; with `led_by`, whether that next hop can be reached so.
    fn end(&self, via: Via, led_by: Option<Ipv4Addr>) -> Option<Target> {
        let target = match (via, led_by) {
            (Via::NextHop { interface, next_hop }, _) => Target::Neighbour(interface, next_hop),
            (Via::Attached { interface, .. }, Some(next_hop)) => self.neighbour(interface, next_hop),
            (Via::Attached { interface, source }, None) if self.is_ethernet(interface) => {
                Target::Glean(interface, source)
            }
            (Via::Attached { interface, .. }, None) => Target::Neighbour(interface, Ipv4Addr::UNSPECIFIED),
            // A next hop that is this router, or that is thrown away, reaches nobody.
            (_, Some(_)) | (Via::Recursive { .. }, None) => return None,
            (Via::Broadcast { interface }, None) => Target::Broadcast(interface),
            (Via::Local { .. }, None) => Target::Special(AdjKind::Local),
            (Via::Lookup(fib), None) => Target::Lookup(fib),
            (Via::Punt, None) => Target::Special(AdjKind::Punt),
            (Via::NoRoute, None) => Target::NoRoute,
            (Via::Drop, None) => Target::Special(AdjKind::Drop),
            (Via::Unreachable, None) => Target::Special(AdjKind::Unreachable),
            (Via::Prohibit, None) => Target::Special(AdjKind::Prohibit),
        };
        Some(target)
    }

    /// On a link between two there is one neighbour, whatever its address.
    fn neighbour(&self, interface: SwIfIndex, next_hop: Ipv4Addr) -> Target {
        let next_hop = if self.is_ethernet(interface) { next_hop } else { Ipv4Addr::UNSPECIFIED };
        Target::Neighbour(interface, next_hop)
    }

    fn is_ethernet(&self, interface: SwIfIndex) -> bool {
        self.interfaces.data(interface).is_ok_and(|d| d.flags().has(IfFlags::ETHERNET))
    }

    /// The adjacency for a target, locked once more.
    pub(crate) fn lock(&self, target: Target) -> Result<AdjIndex, FibError> {
        Ok(match target {
            Target::NoRoute => AdjIndex::NONE,
            Target::Special(kind) => self.adjacencies.special(kind)?,
            Target::Unresolved | Target::Loop => self.adjacencies.special(AdjKind::Drop)?,
            Target::Lookup(fib) => self.adjacencies.lookup_in(Link::Ip4, fib.0)?,
            Target::Neighbour(interface, next_hop) => {
                self.adjacencies.neighbour(interface, Link::Ip4, next_hop.into())?
            }
            Target::Glean(interface, source) => self.adjacencies.glean(interface, source.into())?,
            Target::Broadcast(interface) => self.adjacencies.broadcast(interface)?,
        })
    }

    pub(crate) fn unlock(&self, adj: AdjIndex) {
        if adj != AdjIndex::NONE {
            self.adjacencies.unlock(adj);
        }
    }

    /// The entry that covers a next hop now.
    pub(crate) fn cover_of(&self, (fib, next_hop): Tracked) -> Option<(Ip4Prefix, ListId)> {
        let (prefix, slot) = self.table(fib)?.longest(next_hop, 33)?;
        Some((prefix, slot.best().list))
    }

    /// The next hops an entry covers, or did, got another cover: finds out which lists lead elsewhere now.
    ///
    /// Whatever is reached through a list that may have changed is resolved anew as well, whether or not that
    /// list's own answer changed: a list may go through another further than that one itself does.
    pub(crate) fn covers_changed(&mut self, fib: FibIndex, prefix: Ip4Prefix) -> Vec<ListId> {
        if self.trackers.is_empty() {
            return Vec::new();
        }
        let range = prefix.range();
        let inside = self.trackers.range((fib, range.first())..=(fib, range.last()));
        let near = |cover: &Option<(Ip4Prefix, ListId)>| cover.is_none_or(|(c, _)| c.len() <= prefix.len());
        let inside: Vec<Tracked> = inside.filter(|(_, t)| near(&t.cover)).map(|(at, _)| *at).collect();
        let mut changed = Vec::new();
        for at in inside {
            let cover = self.cover_of(at);
            let Some(tracker) = self.trackers.get_mut(&at) else { continue };
            if tracker.cover == cover {
                continue;
            }
            let old = std::mem::replace(&mut tracker.cover, cover);
            changed.extend(tracker.users.iter().copied());
            self.follow(at, old, cover);
        }
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        while let Some(id) = changed.pop() {
            if !seen.insert(id) {
                continue;
            }
            found.push(id);
            if let Some(list) = self.lists.get(id) {
                let users =
                    list.followers.iter().filter_map(|at| self.trackers.get(at)).flat_map(|t| &t.users);
                changed.extend(users.copied());
            }
        }
        found
    }

    fn follow(&mut self, at: Tracked, old: Option<(Ip4Prefix, ListId)>, new: Option<(Ip4Prefix, ListId)>) {
        if let Some(list) = old.and_then(|(_, id)| self.lists.get_mut(id)) {
            list.followers.remove(&at);
        }
        if let Some(list) = new.and_then(|(_, id)| self.lists.get_mut(id)) {
            list.followers.insert(at);
        }
    }

    pub(crate) fn track(&mut self, id: ListId, at: Tracked) {
        if !self.trackers.contains_key(&at) {
            let cover = self.cover_of(at);
            self.trackers.insert(at, Tracker { cover, users: BTreeSet::new() });
            self.follow(at, None, cover);
        }
        if let Some(tracker) = self.trackers.get_mut(&at) {
            tracker.users.insert(id);
        }
    }

    pub(crate) fn untrack(&mut self, id: ListId, at: Tracked) {
        let Some(tracker) = self.trackers.get_mut(&at) else { return };
        tracker.users.remove(&id);
        if tracker.users.is_empty() {
            let cover = tracker.cover;
            self.trackers.remove(&at);
            self.follow(at, cover, None);
        }
    }
}
