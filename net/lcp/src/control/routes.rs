//! Routes of one namespace of Linux, by prefix and metric: what the forwarding table has of each prefix, and how many routes name each next
//! hop by number.

use std::collections::HashMap;
use std::net::IpAddr;

use shoal_fib::Source;
use shoal_infra::Pieces;
use shoal_interface::HostRoute;

/// A prefix in a table of the kernel.
pub(super) type Key = (u32, (IpAddr, u8));

/// What the forwarding table has of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Installed {
    /// The table of this router.
    pub id: u32,
    pub source: Source,
}

/// The routes to a prefix, the lowest metric first, each with when it was told ([`Routes::begin`]). Nearly always it is one
/// route: a tree would take ten times its memory.
#[derive(Default)]
pub(super) struct ByMetric(Vec<(HostRoute, u64)>);

impl ByMetric {
    /// The one of this metric.
    pub fn get(&self, metric: u32) -> Option<&HostRoute> {
        self.iter().find(|route| route.metric == metric)
    }

    /// All, with when they were told.
    pub fn told(&self) -> std::slice::Iter<'_, (HostRoute, u64)> {
        self.0.iter()
    }

    /// All.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &HostRoute> {
        self.0.iter().map(|(route, _)| route)
    }

    /// The one with the lowest metric.
    pub fn first(&self) -> Option<&HostRoute> {
        self.iter().next()
    }

    /// The only one.
    pub fn only(&self) -> Option<&HostRoute> {
        match self.0.as_slice() {
            [(route, _)] => Some(route),
            _ => None,
        }
    }

    fn insert(&mut self, route: HostRoute, now: u64) -> Option<HostRoute> {
        match self.0.binary_search_by_key(&route.metric, |(there, _)| there.metric) {
            Ok(at) => self.0.get_mut(at).map(|there| std::mem::replace(there, (route, now)).0),
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (route, now));
                None
            }
        }
    }
}

/// What is known of a prefix.
#[derive(Default)]
pub(super) struct Known {
    /// Linux's routes; none while what the forwarding table has is still to be taken away.
    pub routes: ByMetric,
    /// What the forwarding table has.
    pub installed: Option<Installed>,
}

impl Known {
    /// Whether nothing is known any more.
    fn is_nothing(&self) -> bool {
        self.installed.is_none() && self.routes.0.is_empty()
    }
}

/// What a route that is told meets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// No route of its metric.
    None,
    /// Another one.
    Other(HostRoute),
    /// The very same one, which is alone, and which the forwarding table has.
    Same,
}

#[derive(Default)]
pub(super) struct Routes {
    all: Pieces<Key, Known>,
    naming: HashMap<u32, usize>,
    /// Prefixes that have a route.
    prefixes: usize,
    /// Prefixes that the forwarding table has.
    installed: usize,
    /// How often something began that concerns what was told before.
    now: u64,
}

impl Routes {
    /// Those of the namespace that is followed as the `nth` one. What is heard there is newer than what was heard before, so that work on
    /// their routes, which may be under way still, leaves its own alone.
    pub fn of_mirror(nth: u64) -> Self {
        Routes { now: nth << 32, ..Routes::default() }
    }

    /// What is known of a prefix.
    pub fn known(&self, key: &Key) -> Option<&Known> {
        self.all.get(key)
    }

    /// The routes to a prefix, of which there is at least one.
    pub fn get(&self, key: &Key) -> Option<&ByMetric> {
        self.all.get(key).map(|known| &known.routes).filter(|routes| !routes.0.is_empty())
    }

    /// Whether all may be looked at at once, without others having to wait.
    pub fn are_few(&self) -> bool {
        const FEW: usize = 4096;
        self.prefixes <= FEW
    }

    /// How many prefixes there are.
    pub fn prefixes(&self) -> usize {
        self.prefixes
    }

    /// Of how many of them the forwarding table has something.
    pub fn installed(&self) -> usize {
        self.installed
    }

    /// All prefixes with their routes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &ByMetric)> {
        let all = self.all.iter().map(|(key, known)| (key, &known.routes));
        all.filter(|(_, routes)| !routes.0.is_empty())
    }

    /// Whether a route names this next hop.
    pub fn any_names(&self, id: u32) -> bool {
        self.naming.contains_key(&id)
    }

    /// Something begins that concerns what was told before, as a listing of all that there is. What is told from now on is told at the time
    /// that is returned, or later.
    pub fn begin(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// The prefixes of one part of all with their routes; `None` behind the last part. What is there from the first part to the last is
    /// met once.
    pub fn part(&self, number: usize) -> Option<impl Iterator<Item = (&Key, &ByMetric)>> {
        Some(self.all.piece(number)?.map(|(key, known)| (key, &known.routes)))
    }

    /// Takes a route; says what it met.
    pub fn insert(&mut self, key: Key, route: HostRoute) -> Before {
        let Routes { all, naming, prefixes, now, .. } = self;
        if let Some(id) = route.next_hop_id {
            *naming.entry(id).or_default() += 1;
        }
        all.with_or_default(key, |known| {
            *prefixes += usize::from(known.routes.0.is_empty());
            if let [(there, told_in)] = known.routes.0.as_mut_slice()
                && known.installed.is_some()
                && *there == route
            {
                *told_in = *now;
                leave(naming, &route);
                return Before::Same;
            }
            match known.routes.insert(route, *now) {
                None => Before::None,
                Some(before) => {
                    leave(naming, &before);
                    Before::Other(before)
                }
            }
        })
    }

    /// The forwarding table has this of a prefix now, or nothing; returns what it had before.
    pub fn set_installed(&mut self, key: &Key, now: Option<Installed>) -> Option<Installed> {
        let before = self.all.with_or_remove(key, |known| {
            let before = std::mem::replace(&mut known.installed, now);
            (known.is_nothing(), before)
        })?;
        self.installed += usize::from(now.is_some());
        self.installed -= usize::from(before.is_some());
        before
    }

    /// Keeps those routes to a prefix that are wanted, which may be changed; whether one went.
    pub fn retain(&mut self, key: &Key, mut wanted: impl FnMut(&mut HostRoute) -> bool) -> bool {
        self.keep(key, |route, _| wanted(route))
    }

    /// All prefixes of which anything is known.
    pub fn keys(&self) -> Vec<Key> {
        self.all.iter().map(|(key, _)| *key).collect()
    }

    /// Keeps those routes to a prefix that are wanted, by when they were told, too; whether one went.
    pub fn keep(&mut self, key: &Key, mut wanted: impl FnMut(&mut HostRoute, u64) -> bool) -> bool {
        let Routes { all, naming, prefixes, .. } = self;
        let went = all.with_or_remove(key, |known| {
            let before = known.routes.0.len();
            known.routes.0.retain_mut(|(route, told_in)| {
                let stays = wanted(route, *told_in);
                if !stays {
                    leave(naming, route);
                }
                stays
            });
            let after = known.routes.0.len();
            *prefixes -= usize::from(before > 0 && after == 0);
            (known.is_nothing(), after < before)
        });
        went == Some(true)
    }
}

fn leave(naming: &mut HashMap<u32, usize>, route: &HostRoute) {
    let Some(id) = route.next_hop_id else { return };
    if let Some(count) = naming.get_mut(&id) {
        *count -= 1;
        if *count == 0 {
            naming.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_interface::HostWay;

    use super::*;

    const KEY: Key = (254, (IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 0)), 24));
    const HERE: Installed = Installed { id: 0, source: Source::LcpRt };

    fn route(metric: u32, next_hop_id: Option<u32>) -> HostRoute {
        HostRoute { table: 254, prefix: KEY.1, metric, protocol: 186, next_hop_id, way: HostWay::Blackhole }
    }

    #[test]
    fn a_prefix_is_known_as_long_as_it_has_a_route_or_the_forwarding_table_has_it() {
        let mut all = Routes::default();
        assert_eq!(all.insert(KEY, route(20, Some(7))), Before::None);
        assert_eq!(all.insert(KEY, route(20, Some(7))), Before::Other(route(20, Some(7))));
        assert_eq!(all.set_installed(&KEY, Some(HERE)), None);
        assert_eq!(all.insert(KEY, route(20, Some(7))), Before::Same);
        assert_eq!(all.insert(KEY, route(10, None)), Before::None);
        assert_eq!(all.get(&KEY).and_then(ByMetric::first).map(|route| route.metric), Some(10));
        // It is not alone any more.
        assert_eq!(all.insert(KEY, route(20, Some(7))), Before::Other(route(20, Some(7))));
        assert_eq!((all.prefixes(), all.installed(), all.any_names(7)), (1, 1, true));
        assert!(all.retain(&KEY, |route| route.metric == 10) && !all.any_names(7));
        assert!(all.retain(&KEY, |_| false) && !all.retain(&KEY, |_| false));
        assert_eq!((all.prefixes(), all.installed(), all.iter().count()), (0, 1, 0));
        assert!(all.get(&KEY).is_none() && all.known(&KEY).is_some());
        assert_eq!(all.set_installed(&KEY, None), Some(HERE));
        assert!(all.known(&KEY).is_none());
        assert_eq!((all.set_installed(&KEY, Some(HERE)), all.installed()), (None, 0));
    }

    #[test]
    fn what_is_told_again_is_told_later() {
        let mut all = Routes::default();
        let other: Key = (10, KEY.1);
        all.insert(KEY, route(20, None));
        all.insert(KEY, route(30, None));
        all.insert(other, route(20, Some(7)));
        all.set_installed(&other, Some(HERE));
        let now = all.begin();
        all.insert(KEY, route(30, None));
        assert_eq!(all.insert(other, route(20, Some(7))), Before::Same);
        assert!(
            all.keep(&KEY, |_, told_in| told_in >= now) && !all.keep(&other, |_, told_in| told_in >= now)
        );
        assert_eq!(all.get(&KEY).and_then(ByMetric::only).map(|route| route.metric), Some(30));
        let parts = || (0..).map_while(|number| all.part(number)).flatten();
        assert_eq!(parts().count(), 2);
        assert!(parts().flat_map(|(_, routes)| routes.told()).all(|(_, told_in)| *told_in == now));
        for key in all.keys() {
            all.keep(&key, |_, _| false);
        }
        assert_eq!(all.keys(), [other], "the forwarding table has it");
        assert_eq!((all.prefixes(), all.installed(), all.any_names(7)), (0, 1, false));
    }
}
