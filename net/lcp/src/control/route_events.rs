//! What Linux says of single routes: what is known of them then, and which prefixes are to be decided because of it.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_interface::{EventOrigin, HostPath, HostRoute, HostWay};

use super::mirror::{Mirror, group};
use super::netlink::{Difference, Subject, same};
use super::routes::{Before, ByMetric, Key};
use super::tables::LOCAL;
use super::*;

impl Mirror {
    /// Takes a route that is told; whether its prefix is to be decided.
    fn take_route(&mut self, key: Key, told: EventOrigin, mut route: HostRoute) -> bool {
        let subject = Subject::Route(key.0, key.1, Some(route.metric));
        if self.seen.as_mut().is_some_and(|seen| seen.is_old(told, subject)) {
            return false;
        }
        if told == EventOrigin::Listed && self.is_outdated(&mut route) {
            return false;
        }
        // When a next hop or group changes, the kernel may announce every route by it, which names the same number.
        let known = route.next_hop_id.filter(|id| self.next_hops.contains(*id));
        let learnt = route.learnt();
        if self.watch.is_check(told) {
            let subject = Subject::Route(key.0, key.1, Some(route.metric));
            match self.routes.get(&key).and_then(|all| all.get(route.metric)) {
                None => self.watch.note(subject, Difference::Missing),
                Some(known) if !same(known, &route) => self.watch.note(subject, Difference::Other),
                Some(_) => {}
            }
        }
        match self.routes.insert(key, route) {
            Before::Same => false,
            Before::Other(b) => known.is_none() || b.next_hop_id != known || b.learnt() != learnt,
            Before::None => true,
        }
    }

    /// A route has gone; whether its prefix is to be decided.
    fn lose_route(&mut self, key: &Key, route: &HostRoute) -> bool {
        let is_known = |all: &ByMetric| all.get(route.metric).is_some();
        let is_whole =
            self.seen.is_some() && (key.1.0.is_ipv4() || self.routes.get(key).is_some_and(is_known));
        // Of an IPv6 route that was not known next hops may be left, of which a listing tells.
        if let Some(seen) = self.seen.as_mut().filter(|_| is_whole) {
            seen.note(Subject::Route(key.0, key.1, Some(route.metric)));
        }
        self.routes.retain(key, |old| {
            // Of an IPv6 route next hops go one by one, but not those that it names by number.
            match (&route.way, &mut old.way) {
                _ if old.metric != route.metric => true,
                _ if route.next_hop_id.is_some() || key.1.0.is_ipv4() => false,
                (HostWay::Via(gone), HostWay::Via(paths)) => {
                    let leads = |path: &HostPath| (path.host_index, path.next_hop);
                    paths.retain(|path| gone.iter().all(|g| leads(g) != leads(path)));
                    !paths.is_empty()
                }
                _ => false,
            }
        });
        true
    }
}

impl Lcp {
    /// A route is there or has gone; which prefix is to be decided because of that.
    pub(super) fn hear_route(
        &self,
        netns: &Option<String>,
        told: EventOrigin,
        route: HostRoute,
        present: bool,
    ) -> Option<Key> {
        let key = (route.table, route.prefix);
        let follow = route.table != LOCAL
            && !group(route.prefix.0)
            && !(present && self.comes_by_connection(netns, &route));
        let changed = self.with(netns, |mirror| {
            mirror.watch.count_route(told);
            match present {
                _ if !follow => false,
                true => mirror.take_route(key, told, route),
                false => mirror.lose_route(&key, &route),
            }
        });
        (changed == Some(true)).then_some(key)
    }
}
