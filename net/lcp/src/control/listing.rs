//! A listing of all that there is, under way: what it has named, and what it may be too old to say.
//!
//! The kernel announces changes while it lists, and lists without a lock (Linux 6.9 and later): it may tell of a thing behind the
//! announcement that this has changed or gone. So what was announced since the listing began counts.

use shoal_interface::{EventOrigin, HostEvent, HostLink, HostNextHop, HostPath, HostRoute, HostWay};

use super::mirror::Mirror;
use super::netlink::Subject;
use super::*;

/// What an event is about, but for routes.
fn subject(event: &HostEvent) -> Option<Subject> {
    Some(match event {
        HostEvent::Link(link) => Subject::Link(link.host_index),
        HostEvent::Gone { host_index } => Subject::Link(*host_index),
        HostEvent::Address { host_index, address, .. } => Subject::Address(*host_index, *address),
        HostEvent::Neighbor { host_index, address, .. } => Subject::Neighbor(*host_index, *address),
        HostEvent::NextHop { id, .. } => Subject::NextHop(*id),
        HostEvent::MulticastRoute { route, .. } => {
            Subject::MulticastRoute(Box::new((route.table, route.source, route.group)))
        }
        HostEvent::Begin(_) | HostEvent::End | HostEvent::Route { .. } => return None,
    })
}

/// What has been named since the kernel began to list all that there is.
#[derive(Default)]
pub(super) struct Seen {
    /// Routes that are told later have been named.
    pub routes_since: u64,
    pub neighbors: BTreeSet<(u32, IpAddr)>,
    pub addresses: BTreeSet<(u32, (IpAddr, u8))>,
    pub next_hops: BTreeSet<u32>,
    pub links: BTreeSet<u32>,
    /// What was announced or has gone since then.
    announced: HashSet<Subject>,
}

impl Seen {
    pub fn since(routes_since: u64) -> Self {
        Self { routes_since, ..Self::default() }
    }

    /// Something was announced: what the listing says of it does not count.
    pub fn note(&mut self, subject: Subject) {
        self.announced.insert(subject);
    }

    /// Whether what is told is older than what was announced.
    pub fn is_old(&mut self, told: EventOrigin, subject: Subject) -> bool {
        match told {
            EventOrigin::Listed => self.announced.contains(&subject),
            EventOrigin::Announced => {
                self.note(subject);
                false
            }
        }
    }
}

impl Mirror {
    /// Whether an event, but for routes, is part of a listing that is older than what has happened.
    pub(super) fn is_old(&mut self, told: EventOrigin, event: &HostEvent) -> bool {
        let Some(subject) = subject(event) else { return false };
        if self.seen.as_mut().is_some_and(|seen| seen.is_old(told, subject)) {
            return true;
        }
        let (EventOrigin::Listed, HostEvent::NextHop { id, hop: Some(HostNextHop::One(path)) }) =
            (told, event)
        else {
            return false;
        };
        let is_lost = self.has_lost(path, |link| link.up && link.carrier);
        if is_lost && let Some(seen) = &mut self.seen {
            seen.note(Subject::NextHop(*id));
        }
        is_lost
    }

    /// Takes what a listing is too old to know out of a route of it; whether nothing is left. The kernel takes routes and next hops
    /// by an interface that goes down away without a word, and routes by a next hop that goes.
    pub(super) fn is_outdated(&self, route: &mut HostRoute) -> bool {
        if let Some(id) = route.next_hop_id {
            let has_changed = |seen: &Seen| seen.announced.contains(&Subject::NextHop(id));
            return !self.next_hops.contains(id) && self.seen.as_ref().is_some_and(has_changed);
        }
        let HostWay::Via(paths) = &mut route.way else { return false };
        let before = paths.len();
        paths.retain(|path| !self.has_lost(path, |link| link.up));
        before > 0 && paths.is_empty()
    }

    /// Whether the interface that a path leaves by has gone since the listing began, or become one that cannot have such a path.
    fn has_lost(&self, path: &HostPath, can_have: impl Fn(&HostLink) -> bool) -> bool {
        let index = path.host_index;
        let has_changed = |seen: &Seen| seen.announced.contains(&Subject::Link(index));
        self.seen.as_ref().is_some_and(has_changed) && !self.links.get(&index).is_some_and(can_have)
    }
}
