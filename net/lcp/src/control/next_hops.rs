//! Next hops and groups of Linux that routes name by number: changed once, for all routes by them.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_fib::Path;
use shoal_interface::{EventOrigin, HostNextHop, HostRoute};
use shoal_module::cli::Pace;

use super::netlink::{Difference, Subject};
use super::routes::Key;
use super::*;

/// Numbers that are held for a namespace; the kernel has no bound of its own.
const MOST: usize = 1_048_576;

/// Paths of a group with so many buckets, of which those that stay keep their flows.
pub fn resilient(mut paths: Vec<Path>, buckets: Option<u16>) -> Vec<Path> {
    if let Some(buckets) = buckets {
        for path in &mut paths {
            *path = path.buckets(buckets);
        }
    }
    paths
}

impl Lcp {
    /// A number means this now, or nothing any more.
    pub(super) fn hear_next_hop(
        &self,
        netns: &Option<String>,
        told: EventOrigin,
        id: u32,
        hop: Option<HostNextHop>,
    ) {
        let Some(hop) = hop else { return self.forget_next_hops(netns, &[id]) };
        let changed = self.with(netns, |mirror| {
            mirror.seen.iter_mut().for_each(|seen| seen.next_hops.extend([id]));
            if mirror.next_hops.len() >= MOST && !mirror.next_hops.contains(id) {
                return false;
            }
            let before = mirror.next_hops.put(id, hop.clone());
            if before.as_ref() == Some(&hop) {
                return false;
            }
            if mirror.watch.is_check(told) {
                let difference = if before.is_some() { Difference::Other } else { Difference::Missing };
                mirror.watch.note(Subject::NextHop(id), difference);
            }
            true
        });
        if changed == Some(true) {
            let groups = self.with(netns, |mirror| mirror.next_hops.groups_of(id).collect::<Vec<_>>());
            let ids: BTreeSet<u32> = groups.into_iter().flatten().chain([id]).collect();
            self.decide_slowly(netns, self.keys_by(netns, &ids));
        }
    }

    /// An interface is gone, down or unplugged: the kernel forgets the next hops by it without a word.
    pub(super) fn forget_next_hops_by(&self, netns: &Option<String>, host_index: u32) {
        let gone = self.with(netns, |mirror| mirror.next_hops.by_interface(host_index));
        if let Some(gone) = gone.filter(|gone| !gone.is_empty()) {
            self.forget_next_hops(netns, &gone);
        }
    }

    /// Next hops or groups are gone: so are the routes by them, and they leave the groups that have them.
    fn forget_next_hops(&self, netns: &Option<String>, all: &[u32]) {
        let changed = self.with(netns, |mirror| {
            let (mut gone, mut changed): (BTreeSet<u32>, BTreeSet<u32>) = Default::default();
            for id in all {
                if mirror.next_hops.remove(*id).is_none() {
                    continue;
                }
                gone.insert(*id);
                for group in mirror.next_hops.leave_groups(*id) {
                    let left = mirror.next_hops.contains(group);
                    if left {
                        changed.insert(group)
                    } else {
                        gone.insert(group)
                    };
                }
            }
            (gone, changed)
        });
        let Some((gone, changed)) = changed else { return };
        let ids: BTreeSet<u32> = gone.union(&changed).copied().collect();
        let keys = self.keys_by(netns, &ids);
        self.with(netns, |mirror| {
            for key in &keys {
                mirror.routes.retain(key, |route| route.next_hop_id.is_none_or(|id| !gone.contains(&id)));
            }
        });
        self.decide_slowly(netns, keys);
    }

    /// Prefixes with a route that names one of these numbers.
    fn keys_by(&self, netns: &Option<String>, ids: &BTreeSet<u32>) -> Vec<Key> {
        let find = |mirror: &mut mirror::Mirror| {
            // Most that come and go are named by no route yet or any more.
            if !ids.iter().any(|id| mirror.routes.any_names(*id)) {
                return Vec::new();
            }
            let named = |route: &HostRoute| route.next_hop_id.is_some_and(|id| ids.contains(&id));
            let all = mirror.routes.iter().filter(|(_, routes)| routes.iter().any(named));
            all.map(|(key, _)| *key).collect()
        };
        self.with(netns, find).unwrap_or_default()
    }

    /// Decides a few prefixes at once and many in slices, between which others are served.
    pub(super) fn decide_slowly(&self, netns: &Option<String>, keys: Vec<Key>) {
        const AT_ONCE: usize = 256;
        let control = self.control.upgrade();
        let process = control.as_ref().filter(|_| keys.len() > AT_ONCE);
        let process =
            process.and_then(|control| Some((control.processes().ok()?, control.get::<Lcp>().ok()?)));
        let Some((processes, lcp)) = process else {
            return keys.into_iter().for_each(|key| self.decide(netns, key));
        };
        let netns = netns.clone();
        processes.spawn_unlisted(async move {
            let pace = Pace::default();
            for key in keys {
                lcp.decide(&netns, key);
                pace.give_way().await;
            }
        });
    }
}
