//! What zebra has told: next hops, groups of them, routes, and which of these are not said again after it came back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use shoal_interface::{HostPath, HostWay};
use shoal_wire::IpPrefix;

use crate::netlink::{NextHop, Route, Way};

/// A prefix in a table of the kernel.
pub type Key = (u32, IpPrefix);

/// Groups may hold groups no deeper than this: the kernel allows none at all.
const DEPTH: usize = 2;
/// Members of a group that are looked at.
const MEMBERS: usize = 256;

/// A route and what became of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How packets leave.
    pub way: Way,
    /// The connection that told it last.
    pub generation: u64,
    /// Whether the forwarding table has it.
    pub installed: bool,
    /// The message that told it, while zebra waits for an answer that could not be given yet.
    pub unanswered: Option<Box<[u8]>>,
}

/// All of it.
#[derive(Default)]
pub struct Told {
    routes: BTreeMap<Key, Entry>,
    next_hops: HashMap<u32, (NextHop, u64)>,
    /// Groups by their members.
    groups_of: HashMap<u32, BTreeSet<u32>>,
    /// Numbers that routes ask for and that nothing is known of.
    missing: BTreeSet<u32>,
    /// Next hops that changed since the routes by them were decided.
    changed: BTreeSet<u32>,
    /// All routes need another look.
    all_changed: bool,
}

/// What can be said of a route's next hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// They are known.
    Known(HostWay),
    /// One of the numbers is not known yet.
    Missing(u32),
    /// They are of a kind that there is not here.
    Unknown,
}

impl Told {
    /// How many routes.
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// How many next hops and groups.
    pub fn next_hops(&self) -> usize {
        self.next_hops.len()
    }

    /// Takes a route, instead of the one before it to its prefix.
    pub fn put(&mut self, route: &Route, way: Way, generation: u64) -> Key {
        let key = (route.table, route.prefix);
        let installed = self.routes.get(&key).is_some_and(|before| before.installed);
        self.routes.insert(key, Entry { way, generation, installed, unanswered: None });
        key
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
    pub fn put_next_hop(&mut self, id: u32, hop: NextHop, generation: u64) {
        let before = self.next_hops.insert(id, (hop.clone(), generation)).map(|(before, _)| before);
        if before.as_ref() == Some(&hop) {
            return;
        }
        self.leave_members(id, before.as_ref());
        for member in members(&hop) {
            self.groups_of.entry(member).or_default().insert(id);
        }
        // Nothing is decided by one that is new, unless it was waited for.
        if self.missing.remove(&id) || before.is_some() {
            self.mark(id);
        }
    }

    /// A group has these members no longer.
    fn leave_members(&mut self, group: u32, before: Option<&NextHop>) {
        for member in before.into_iter().flat_map(members) {
            if let Some(groups) = self.groups_of.get_mut(&member) {
                groups.remove(&group);
                if groups.is_empty() {
                    self.groups_of.remove(&member);
                }
            }
        }
    }

    /// A route waits for a next hop.
    pub fn wait_for(&mut self, id: u32) {
        self.missing.insert(id);
    }

    /// A next hop is gone.
    pub fn remove_next_hop(&mut self, id: u32) {
        if let Some((before, _)) = self.next_hops.remove(&id) {
            self.leave_members(id, Some(&before));
            self.mark(id);
        }
    }

    /// Routes by a next hop, and by groups that have it, need another look.
    fn mark(&mut self, id: u32) {
        self.changed.insert(id);
        self.changed.extend(self.groups_of.get(&id).into_iter().flatten().copied());
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

    /// Up to `most` routes behind one, of those that need another look, and where to go on; `None` at the end.
    pub fn after(
        &self,
        from: Option<Key>,
        most: usize,
        wanted: impl Fn(&Entry) -> bool,
    ) -> (Vec<Key>, Option<Key>) {
        let start = from.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut found, mut last) = (Vec::new(), None);
        for (key, entry) in self.routes.range((start, Bound::Unbounded)).take(most) {
            last = Some(*key);
            if wanted(entry) {
                found.push(*key);
            }
        }
        (found, last)
    }

    /// How many routes have been told by a connection.
    pub fn told_by(&self, generation: u64) -> usize {
        self.routes.values().filter(|entry| entry.generation == generation).count()
    }

    /// Forgets next hops that connections before this one told.
    pub fn sweep_next_hops(&mut self, generation: u64) {
        let old: Vec<u32> =
            self.next_hops.iter().filter(|(_, (_, by))| *by < generation).map(|(id, _)| *id).collect();
        for id in old {
            self.remove_next_hop(id);
        }
    }

    /// How packets of a route leave.
    pub fn resolve(&self, way: &Way) -> Resolved {
        match way {
            Way::Direct(way) => Resolved::Known(way.clone()),
            Way::Id(id) => self.of_id(*id),
        }
    }

    fn of_id(&self, id: u32) -> Resolved {
        let mut paths = Vec::new();
        let other = self.collect(id, 1, DEPTH, &mut paths);
        other.unwrap_or_else(|| Resolved::Known(HostWay::Via(scaled(&paths))))
    }

    /// Adds the next hops of a number with their shares; something else if there is no list of them.
    fn collect(&self, id: u32, share: u32, depth: usize, out: &mut Vec<(HostPath, u32)>) -> Option<Resolved> {
        match self.next_hops.get(&id).map(|(hop, _)| hop) {
            None => Some(Resolved::Missing(id)),
            Some(NextHop::Unknown) => Some(Resolved::Unknown),
            Some(NextHop::Blackhole) => Some(Resolved::Known(HostWay::Blackhole)),
            Some(NextHop::One(path)) => {
                out.push((*path, share));
                None
            }
            Some(NextHop::Group(_)) if depth == 0 => Some(Resolved::Unknown),
            Some(NextHop::Group(all)) => {
                let mut members = all.iter().take(MEMBERS);
                members.find_map(|(id, share)| self.collect(*id, *share, depth - 1, out))
            }
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
        self.all || matches!(&entry.way, Way::Id(id) if self.ids.contains(id))
    }
}

fn members(hop: &NextHop) -> impl Iterator<Item = u32> {
    let all = if let NextHop::Group(all) = hop { all.as_slice() } else { &[] };
    all.iter().take(MEMBERS).map(|(member, _)| *member)
}

/// Shares of 16 bits in the 8 that a path has: the largest becomes 255 if it is more.
fn scaled(paths: &[(HostPath, u32)]) -> Vec<HostPath> {
    let most = paths.iter().map(|(_, share)| *share).max().unwrap_or(1).max(255);
    let weight = |share: u32| (share * 255 / most).clamp(1, 255) as u8;
    paths.iter().map(|(path, share)| HostPath { weight: weight(*share), ..*path }).collect()
}
