//! Hosts that have sessions, and the sessions of each in the order in which they were used.

use std::collections::HashMap;

/// No session.
const NONE: u32 = u32::MAX;

/// A host: address and table.
pub type Host = (u32, u32);

/// A host that has sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// Address and table.
    pub host: Host,
    /// Sessions with ports that were given out.
    pub sessions: u32,
    /// Sessions of mappings.
    pub statics: u32,
    oldest: u32,
    newest: u32,
}

/// What is kept of a session beside its packets' rewriting.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The number of its host.
    pub user: u32,
    older: u32,
    newer: u32,
    /// The remote address and port that its first packet was for, or from.
    pub remote: (u32, u16),
    /// The tick at which another router heard of it.
    pub told: u32,
}

impl Default for Place {
    fn default() -> Self {
        Place { user: NONE, older: NONE, newer: NONE, remote: (0, 0), told: 0 }
    }
}

/// Hosts of a worker.
#[derive(Default)]
pub struct Users {
    all: Vec<User>,
    free: Vec<u32>,
    by_host: HashMap<Host, u32>,
    places: Vec<Place>,
}

impl Users {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_host.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }

    fn user(&mut self, index: u32) -> Option<&mut User> {
        self.all.get_mut(index as usize)
    }

    /// A host, if it has sessions.
    pub fn get(&self, host: Host) -> Option<&User> {
        self.all.get(*self.by_host.get(&host)? as usize)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &User> {
        self.by_host.values().filter_map(|index| self.all.get(*index as usize))
    }

    /// Places of a host's sessions, the one that was not used for longest first.
    pub fn places_of(&self, host: Host) -> impl Iterator<Item = u32> {
        let known = |place: &u32| *place != NONE;
        let first = self.get(host).map(|user| user.oldest).filter(known);
        std::iter::successors(first, move |place| Some(self.place(*place).newer).filter(known))
    }

    /// The session of a host that was not used for longest.
    pub fn oldest(&self, host: Host) -> Option<u32> {
        self.get(host).map(|user| user.oldest).filter(|oldest| *oldest != NONE)
    }

    /// What is kept of the session at a place.
    pub fn place(&self, place: u32) -> Place {
        self.places.get(place as usize).copied().unwrap_or_default()
    }

    /// The same, to be changed.
    pub fn place_mut(&mut self, place: u32) -> Option<&mut Place> {
        self.places.get_mut(place as usize)
    }

    fn index_of(&mut self, host: Host) -> u32 {
        if let Some(index) = self.by_host.get(&host) {
            return *index;
        }
        let user = User { host, sessions: 0, statics: 0, oldest: NONE, newest: NONE };
        let index = self.free.pop().unwrap_or(self.all.len() as u32);
        match self.user(index) {
            Some(place) => *place = user,
            None => self.all.push(user),
        }
        self.by_host.insert(host, index);
        index
    }

    /// A host has a session more, at a place.
    pub fn add(&mut self, host: Host, place: u32, is_static: bool, remote: (u32, u16)) {
        let index = self.index_of(host);
        if let Some(user) = self.user(index) {
            *(if is_static { &mut user.statics } else { &mut user.sessions }) += 1;
        }
        if self.places.len() <= place as usize {
            self.places.resize(place as usize + 1, Place::default());
        }
        if let Some(at) = self.places.get_mut(place as usize) {
            *at = Place { user: index, remote, ..Place::default() };
        }
        self.append(index, place);
    }

    fn append(&mut self, index: u32, place: u32) {
        let Some(user) = self.user(index) else { return };
        let last = std::mem::replace(&mut user.newest, place);
        if last == NONE {
            user.oldest = place;
        } else if let Some(at) = self.places.get_mut(last as usize) {
            at.newer = place;
        }
        if let Some(at) = self.places.get_mut(place as usize) {
            (at.older, at.newer) = (last, NONE);
        }
    }

    fn unlink(&mut self, place: u32) -> Option<u32> {
        let Place { user: index, older, newer, .. } = *self.places.get(place as usize)?;
        let user = self.all.get_mut(index as usize)?;
        if user.oldest == place {
            user.oldest = newer;
        }
        if user.newest == place {
            user.newest = older;
        }
        if let Some(at) = self.places.get_mut(older as usize) {
            at.newer = newer;
        }
        if let Some(at) = self.places.get_mut(newer as usize) {
            at.older = older;
        }
        Some(index)
    }

    /// The session at a place was used last of its host's.
    pub fn used(&mut self, place: u32) {
        let is_last = self.places.get(place as usize).is_none_or(|at| at.newer == NONE);
        if !is_last && let Some(index) = self.unlink(place) {
            self.append(index, place);
        }
    }

    /// The session at a place is no more; a host without sessions is forgotten.
    pub fn remove(&mut self, place: u32, is_static: bool) {
        let Some(index) = self.unlink(place) else { return };
        if let Some(at) = self.places.get_mut(place as usize) {
            *at = Place::default();
        }
        let Some(user) = self.user(index) else { return };
        let count = if is_static { &mut user.statics } else { &mut user.sessions };
        *count = count.saturating_sub(1);
        let User { host, sessions, statics, .. } = *user;
        if sessions == 0 && statics == 0 {
            self.by_host.remove(&host);
            self.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of a host's sessions, oldest first.
    fn order(users: &Users, host: Host) -> Vec<u32> {
        users.places_of(host).collect()
    }

    #[test]
    fn the_session_that_was_not_used_for_longest_is_the_oldest() {
        let mut users = Users::default();
        let (host, other) = ((1, 0), (2, 0));
        for place in [4, 0, 2] {
            users.add(host, place, false, (9, 9));
        }
        users.add(other, 1, true, (9, 9));
        assert_eq!(order(&users, host), [4, 0, 2]);
        users.used(4);
        users.used(4);
        assert_eq!(order(&users, host), [0, 2, 4]);
        users.used(2);
        assert_eq!(order(&users, host), [0, 4, 2]);
        users.remove(4, false);
        assert_eq!(order(&users, host), [0, 2]);
        assert_eq!(users.get(other).map(|user| (user.sessions, user.statics)), Some((0, 1)));
        users.remove(1, true);
        assert_eq!(users.get(other), None);
        users.remove(0, false);
        users.remove(2, false);
        assert!(users.is_empty());
        users.add(other, 7, false, (9, 9));
        assert_eq!((users.all.len(), order(&users, other)), (2, vec![7]), "places are used again");
    }
}
