//! What zebra has announced: next hops, groups of them, routes, and which of these are not announced again after it
//! came back.

use std::collections::{BTreeSet, HashMap};

use shoal_infra::Pieces;
use shoal_interface::{HostNextHop, HostNextHops, Resolved};
use shoal_wire::IpPrefix;

use crate::netlink::RouteExit;

/// A prefix in a table of the kernel.
pub type Key = (u32, IpPrefix);

/// A route and what became of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How packets leave.
    pub way: RouteExit,
    /// The connection that told it last.
    pub generation: u64,
    /// The table of this router that has it.
    pub installed: Option<u32>,
    /// The message that told it, while zebra waits for an answer that could not be given yet.
    pub unanswered: Option<Box<[u8]>>,
}

/// All of it.
#[derive(Default)]
pub struct AnnouncedRoutes {
    routes: Pieces<Key, Entry>,
    next_hops: HostNextHops,
    /// The connection that told a next hop last.
    next_hop_told_by: HashMap<u32, u64>,
    /// Numbers that routes ask for and that nothing is known of.
    missing: BTreeSet<u32>,
    /// Next hops that changed since the routes by them were decided.
    changed: BTreeSet<u32>,
    /// All routes need another look.
    all_changed: bool,
}

impl AnnouncedRoutes {
    /// How many routes.
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// How many next hops and groups.
    pub fn next_hops(&self) -> usize {
        self.next_hops.len()
    }

    /// Takes a route, instead of the one before it to its prefix, which is returned.
    pub fn put(&mut self, key: Key, entry: Entry) -> Option<Entry> {
        self.routes.insert(key, entry)
    }

    /// A route is gone; whether there was one.
    pub fn remove(&mut self, key: &Key) -> Option<Entry> {
        self.routes.remove(key)
    }

    /// A route.
    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.routes.get(key)
    }

    /// A route, to be changed.
    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.routes.get_mut(key)
    }

    /// A next hop is this one now.
    pub fn put_next_hop(&mut self, id: u32, hop: HostNextHop, generation: u64) {
        self.next_hop_told_by.insert(id, generation);
        let before = self.next_hops.put(id, hop.clone());
        if before.as_ref() == Some(&hop) {
            return;
        }
        // Nothing is decided by one that is new, unless it was waited for.
        if self.missing.remove(&id) || before.is_some() {
            self.mark(id);
        }
    }

    /// A route waits for a next hop.
    pub fn wait_for(&mut self, id: u32) {
        self.missing.insert(id);
    }

    /// A next hop is gone.
    pub fn remove_next_hop(&mut self, id: u32) {
        self.next_hop_told_by.remove(&id);
        if self.next_hops.remove(id).is_some() {
            self.mark(id);
        }
    }

    /// Routes by a next hop, and by groups that have it, need another look.
    fn mark(&mut self, id: u32) {
        self.changed.insert(id);
        self.changed.extend(self.next_hops.groups_of(id));
    }

    /// All routes need another look.
    pub fn mark_all(&mut self) {
        self.all_changed = true;
    }

    /// Takes what routes need another look for, if any do.
    pub fn take_changed(&mut self) -> Option<Changed> {
        let ids = std::mem::take(&mut self.changed);
        let all = std::mem::take(&mut self.all_changed);
        (all || !ids.is_empty()).then_some(Changed { ids, all })
    }

    /// Routes of a part of the table that need another look, and the part to go on with; `None` at the end.
    pub fn part(&self, number: usize, wanted: impl Fn(&Entry) -> bool) -> (Vec<Key>, Option<usize>) {
        let Some(part) = self.routes.piece(number) else { return (Vec::new(), None) };
        (part.filter(|(_, entry)| wanted(entry)).map(|(key, _)| *key).collect(), Some(number + 1))
    }

    /// How many routes a connection has announced.
    pub fn told_by(&self, generation: u64) -> usize {
        self.routes.values().filter(|entry| entry.generation == generation).count()
    }

    /// Forgets next hops that connections before this one told.
    pub fn sweep_next_hops(&mut self, generation: u64) {
        let old: Vec<u32> =
            self.next_hop_told_by.iter().filter(|(_, by)| **by < generation).map(|(id, _)| *id).collect();
        for id in old {
            self.remove_next_hop(id);
        }
    }

    /// How packets of a route leave.
    pub fn resolve(&self, way: &RouteExit) -> Resolved {
        match way {
            RouteExit::Direct(way) => Resolved::Known(way.clone()),
            RouteExit::Id(id) => self.next_hops.resolve(*id),
        }
    }

    /// The buckets of the resilient group that a route leaves by.
    pub fn buckets(&self, way: &RouteExit) -> Option<u16> {
        match way {
            RouteExit::Direct(_) => None,
            RouteExit::Id(id) => self.next_hops.buckets(*id),
        }
    }
}

/// What routes need another look for.
pub struct Changed {
    ids: BTreeSet<u32>,
    all: bool,
}

impl Changed {
    /// Whether a route is one of them.
    pub fn concerns(&self, entry: &Entry) -> bool {
        self.all || matches!(&entry.way, RouteExit::Id(id) if self.ids.contains(id))
    }
}
