//! Next hops and groups of Linux that routes name by number: changed once, for all routes by them.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_fib::Path;
use shoal_interface::{EventOrigin, HostNextHop, HostRoute};

use super::netlink::{Difference, Subject};
use super::slices::{Change, Fate};
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
            self.change_routes_by(netns, BTreeSet::new(), ids);
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
                mirror.seen.iter_mut().for_each(|seen| seen.note(Subject::NextHop(*id)));
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
        self.change_routes_by(netns, gone, changed);
    }

    /// Routes that name numbers which are gone go, and those that name numbers with another meaning now are decided again.
    fn change_routes_by(&self, netns: &Option<String>, gone: BTreeSet<u32>, changed: BTreeSet<u32>) {
        // Most that come and go are named by no route yet or any more.
        let any =
            |mirror: &mut mirror::Mirror| gone.iter().chain(&changed).any(|id| mirror.routes.any_names(*id));
        if self.with(netns, any) == Some(true) {
            self.change_routes(netns, Named { gone, changed });
        }
    }
}

/// Routes that name next hops by number.
struct Named {
    gone: BTreeSet<u32>,
    changed: BTreeSet<u32>,
}

impl Change for Named {
    fn concerns(&self, _: &mirror::Mirror, route: &HostRoute) -> bool {
        route.next_hop_id.is_some_and(|id| self.gone.contains(&id) || self.changed.contains(&id))
    }

    fn change(&self, route: &mut HostRoute) -> Fate {
        match route.next_hop_id {
            Some(id) if self.gone.contains(&id) => Fate::Goes,
            Some(id) if self.changed.contains(&id) => Fate::Changes,
            _ => Fate::Stays,
        }
    }
}
