//! Routes of one namespace of Linux, by prefix and metric, and how many of them name each next hop by number.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use shoal_interface::HostRoute;

/// A prefix in a table of the kernel.
pub(super) type Key = (u32, (IpAddr, u8));

/// The routes to a prefix, the lowest metric first. Nearly always it is one: a tree would take ten times its memory.
#[derive(Default)]
pub(super) struct ByMetric(Vec<HostRoute>);

impl ByMetric {
    /// The one of this metric.
    pub fn get(&self, metric: u32) -> Option<&HostRoute> {
        self.0.iter().find(|route| route.metric == metric)
    }

    /// All.
    pub fn iter(&self) -> std::slice::Iter<'_, HostRoute> {
        self.0.iter()
    }

    /// The one with the lowest metric.
    pub fn first(&self) -> Option<&HostRoute> {
        self.0.first()
    }

    fn insert(&mut self, route: HostRoute) -> Option<HostRoute> {
        match self.0.binary_search_by_key(&route.metric, |there| there.metric) {
            Ok(at) => self.0.get_mut(at).map(|there| std::mem::replace(there, route)),
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, route);
                None
            }
        }
    }
}

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
        let before = self.all.entry(key).or_default().insert(route);
        before.inspect(|before| leave(&mut self.naming, before))
    }

    /// Keeps those routes to a prefix that are wanted, which may be changed; whether one went.
    pub fn retain(&mut self, key: &Key, mut wanted: impl FnMut(&mut HostRoute) -> bool) -> bool {
        let Some(routes) = self.all.get_mut(key) else { return false };
        let before = routes.0.len();
        routes.0.retain_mut(|route| keep(&mut self.naming, route, &mut wanted));
        let went = routes.0.len() < before;
        if routes.0.is_empty() {
            self.all.remove(key);
        }
        went
    }

    /// Keeps those of all routes that are wanted; returns the prefixes of which one went.
    pub fn retain_all(&mut self, mut wanted: impl FnMut(&Key, &HostRoute) -> bool) -> Vec<Key> {
        let mut changed = Vec::new();
        self.all.retain(|key, routes| {
            let before = routes.0.len();
            routes.0.retain_mut(|route| keep(&mut self.naming, route, &mut |route| wanted(key, route)));
            if routes.0.len() < before {
                changed.push(*key);
            }
            !routes.0.is_empty()
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
