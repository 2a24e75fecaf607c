//! Routes of one namespace of Linux, by prefix and metric, and how many of them name each next hop by number.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use shoal_interface::HostRoute;

/// A prefix in a table of the kernel.
pub(super) type Key = (u32, (IpAddr, u8));

/// The routes to a prefix, by metric.
pub(super) type ByMetric = BTreeMap<u32, HostRoute>;

#[derive(Default)]
pub(super) struct Routes {
    all: BTreeMap<Key, ByMetric>,
    naming: HashMap<u32, usize>,
}

impl Routes {
    /// The routes to a prefix.
    pub fn get(&self, key: &Key) -> Option<&ByMetric> {
        self.all.get(key)
    }

    /// How many prefixes there are.
    pub fn prefixes(&self) -> usize {
        self.all.len()
    }

    /// All prefixes with their routes.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &ByMetric)> {
        self.all.iter()
    }

    /// Whether a route names this next hop.
    pub fn any_names(&self, id: u32) -> bool {
        self.naming.contains_key(&id)
    }

    /// Takes a route; returns the one of this metric before it.
    pub fn insert(&mut self, key: Key, route: HostRoute) -> Option<HostRoute> {
        if let Some(id) = route.next_hop_id {
            *self.naming.entry(id).or_default() += 1;
        }
        let before = self.all.entry(key).or_default().insert(route.metric, route);
        before.inspect(|before| leave(&mut self.naming, before))
    }

    /// Keeps those routes to a prefix that are wanted, which may be changed; whether one went.
    pub fn retain(&mut self, key: &Key, mut wanted: impl FnMut(&mut HostRoute) -> bool) -> bool {
        let Some(routes) = self.all.get_mut(key) else { return false };
        let before = routes.len();
        routes.retain(|_, route| keep(&mut self.naming, route, &mut wanted));
        let went = routes.len() < before;
        if routes.is_empty() {
            self.all.remove(key);
        }
        went
    }

    /// Keeps those of all routes that are wanted; returns the prefixes of which one went.
    pub fn retain_all(&mut self, mut wanted: impl FnMut(&Key, &HostRoute) -> bool) -> Vec<Key> {
        let mut changed = Vec::new();
        self.all.retain(|key, routes| {
            let before = routes.len();
            routes.retain(|_, route| keep(&mut self.naming, route, &mut |route| wanted(key, route)));
            if routes.len() < before {
                changed.push(*key);
            }
            !routes.is_empty()
        });
        changed
    }
}

/// Whether a route is wanted; it is not counted any more if not.
fn keep(
    naming: &mut HashMap<u32, usize>,
    route: &mut HostRoute,
    wanted: &mut impl FnMut(&mut HostRoute) -> bool,
) -> bool {
    let keep = wanted(route);
    if !keep {
        leave(naming, route);
    }
    keep
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
